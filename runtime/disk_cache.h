// The disk cache of compiled kernels: content-addressed, private to the user, safe between
// processes, bounded in size.
#ifndef UMBRA_RUNTIME_DISK_CACHE_H_
#define UMBRA_RUNTIME_DISK_CACHE_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace umbra::runtime {

/// A 128-bit content key in hexadecimal, from the parts in order (each with its length).
std::string CacheKey(const std::vector<std::string_view>& parts);

class DiskCache {
 public:
  /// A cache in `folder`, created with mode 0700; a folder that exists keeps its mode. One that
  /// cannot be created or written, that another user owns or that others can write makes a cache
  /// that stores nothing; the reason is in problem().
  DiskCache(std::filesystem::path folder, std::uint64_t max_bytes);
  /// A cache that stores nothing, for this reason.
  explicit DiskCache(std::string problem);

  /// The process's cache: $UMBRA_CACHE_DIR, else $XDG_CACHE_HOME/umbra, else ~/.cache/umbra;
  /// UMBRA_CACHE_DIR=off turns it off; UMBRA_CACHE_MAX_MB bounds it (256). Warns once on standard
  /// error if the folder cannot be used.
  static DiskCache& Default();

  /// The payload stored under `key`, if it is there and whole (length and checksum are verified; a
  /// damaged entry is deleted).
  std::optional<std::vector<char>> Read(const std::string& key);
  /// Stores a payload by atomic rename; failures to write are silent. What is beyond the bound is deleted by some of
  /// the calls, the entries unused longest first, so that the cache may for a while be some hundredths larger.
  void Write(const std::string& key, std::string_view payload);

  bool enabled() const { return problem_.empty(); }
  const std::string& problem() const { return problem_; }
  const std::filesystem::path& folder() const { return folder_; }
  /// Number of entries and their bytes.
  std::pair<std::uint64_t, std::uint64_t> Usage() const;
  /// Deletes every entry, and what writes that were cut short have left.
  void Clear();

 private:
  void Trim();
  std::filesystem::path folder_;
  std::uint64_t max_bytes_;
  std::string problem_;
};

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_DISK_CACHE_H_
