#include "runtime/disk_cache.h"
#include "runtime/environment.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace umbra::runtime {

namespace fs = std::filesystem;

namespace {

constexpr std::array<char, 8> kMagic = {'U', 'M', 'B', 'R', 'A', 'K', '0', '1'};

struct Header {
  std::array<char, 8> magic;
  std::uint64_t length;
  XXH128_hash_t checksum;
};

// Creates a folder and those that it lies in, for this user only.
bool MakeFolders(const fs::path& folder) {
  const auto make = [&] { return mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST; };
  if (make()) return true;
  return errno == ENOENT && folder.has_parent_path() && MakeFolders(folder.parent_path()) && make();
}

std::string PrepareFolder(const fs::path& folder) {
  if (!MakeFolders(folder)) return "cannot create " + folder.string() + ": " + std::strerror(errno);
  struct stat status;
  if (lstat(folder.c_str(), &status) != 0) return "cannot look at " + folder.string() + ": " + std::strerror(errno);
  if (!S_ISDIR(status.st_mode)) return folder.string() + " is not a folder";
  if (status.st_uid != geteuid()) return folder.string() + " belongs to another user";
  // Whoever can write here can put machine code into this process.
  if ((status.st_mode & 022) != 0)
    return folder.string() + " can be written by other users; take that away with 'chmod go-w " + folder.string() + "'";
  if (access(folder.c_str(), W_OK | X_OK) != 0) return folder.string() + " is not writable";
  return "";
}

// Is the file an entry, or the beginning of one that another process may still be writing?
enum class FileKind { kEntry, kBeginning, kOther };

FileKind KindOf(const fs::path& path) {
  constexpr std::size_t kKey = 32, kRandom = 6;
  const std::string name = path.filename().string();
  if (name.find_first_not_of("0123456789abcdef") != kKey || name[kKey] != '.') return FileKind::kOther;
  if (name.substr(kKey) == ".kernel") return FileKind::kEntry;
  return name.size() == kKey + 1 + kRandom ? FileKind::kBeginning : FileKind::kOther;
}

}  // namespace

std::string CacheKey(const std::vector<std::string_view>& parts) {
  XXH3_state_t* state = XXH3_createState();
  XXH3_128bits_reset(state);
  for (std::string_view part : parts) {
    const std::uint64_t length = part.size();
    XXH3_128bits_update(state, &length, sizeof length);
    XXH3_128bits_update(state, part.data(), part.size());
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  std::array<char, 33> text;
  std::snprintf(text.data(), text.size(), "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text.data();
}

DiskCache::DiskCache(fs::path folder, std::uint64_t max_bytes)
    : folder_(std::move(folder)),
      max_bytes_(max_bytes),
      problem_(PrepareFolder(folder_)) {}

DiskCache::DiskCache(std::string problem) : max_bytes_(0), problem_(std::move(problem)) {}

DiskCache& DiskCache::Default() {
  // Never destroyed: static objects may compile to the end of the process.
  static DiskCache& cache = *new DiskCache([] {
    const Environment environment = ReadEnvironment();
    const std::string& chosen = environment.cache_dir;
    const char* xdg = std::getenv("XDG_CACHE_HOME");
    const char* home = std::getenv("HOME");
    if (chosen == "off") return DiskCache("turned off");
    fs::path folder;
    if (!chosen.empty()) folder = chosen;
    else if (xdg != nullptr && *xdg != '\0') folder = fs::path(xdg) / "umbra";
    else if (home != nullptr && *home != '\0') folder = fs::path(home) / ".cache" / "umbra";
    DiskCache made = folder.empty() ? DiskCache("neither HOME nor XDG_CACHE_HOME is set, which say where it lies")
                                    : DiskCache(folder, static_cast<std::uint64_t>(environment.cache_max_mb) << 20);
    if (!made.enabled())
      std::fprintf(stderr,
                   "umbra: warning: the kernel cache is not used: %s; set UMBRA_CACHE_DIR to a "
                   "folder of your own, or to 'off'\n",
                   made.problem().c_str());
    return made;
  }());
  return cache;
}

std::optional<std::vector<char>> DiskCache::Read(const std::string& key) {
  if (!enabled()) return std::nullopt;
  const fs::path path = folder_ / (key + ".kernel");
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  Header header;
  std::vector<char> payload;
  std::error_code error;
  const std::uint64_t size = fs::file_size(path, error);
  const bool readable = static_cast<bool>(file.read(reinterpret_cast<char*>(&header), sizeof header));
  bool whole = !error && readable && header.magic == kMagic && size == sizeof header + header.length;
  if (whole) {
    payload.resize(header.length);
    if (!file.read(payload.data(), static_cast<std::streamsize>(payload.size())))
      return std::nullopt;  // an error of the device, not of the entry
    const XXH128_hash_t checksum = XXH3_128bits(payload.data(), payload.size());
    whole = XXH128_isEqual(checksum, header.checksum) != 0;
  }
  if (!whole) {
    fs::remove(path, error);
    return std::nullopt;
  }
  fs::last_write_time(path, fs::file_time_type::clock::now(), error);  // it is used, which Trim goes by
  return payload;
}

void DiskCache::Write(const std::string& key, std::string_view payload) {
  if (!enabled()) return;
  std::string temporary = (folder_ / (key + ".XXXXXX")).string();
  const int file = mkstemp(temporary.data());
  if (file < 0) return;
  Header header{kMagic, payload.size(), XXH3_128bits(payload.data(), payload.size())};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes += payload;
  std::size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t count = write(file, bytes.data() + written, bytes.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    written += static_cast<std::size_t>(count);
  }
  const bool closed = close(file) == 0;
  const std::string path = (folder_ / (key + ".kernel")).string();
  if (written != bytes.size() || !closed || std::rename(temporary.c_str(), path.c_str()) != 0) {
    unlink(temporary.c_str());
    return;
  }
  // To look at all entries takes as long as to compile a kernel once there are thousands. By chance, which the key
  // decides, a write does so for each 64th of the bound that is written, by however many processes.
  constexpr std::uint64_t kLooks = 64;
  const std::uint64_t writes = max_bytes_ / kLooks / bytes.size();
  if (writes <= 1 || XXH3_64bits(key.data(), key.size()) % writes == 0) Trim();
}

namespace {
struct File {
  fs::path path;
  FileKind kind;
  std::uint64_t size;
  fs::file_time_type time;
};

// Those of the cache that the folder has.
std::vector<File> FilesIn(const fs::path& folder) {
  std::vector<File> files;
  std::error_code error, unknown;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const FileKind kind = KindOf(it->path());
    if (kind == FileKind::kOther) continue;
    File file{it->path(), kind, it->file_size(unknown), it->last_write_time(unknown)};
    if (!unknown) files.push_back(std::move(file));
    unknown.clear();
  }
  return files;
}
}  // namespace

std::pair<std::uint64_t, std::uint64_t> DiskCache::Usage() const {
  std::uint64_t entries = 0, bytes = 0;
  if (!enabled()) return {0, 0};
  for (const File& file : FilesIn(folder_))
    if (file.kind == FileKind::kEntry) ++entries, bytes += file.size;
  return {entries, bytes};
}

void DiskCache::Clear() {
  std::error_code error;
  if (!enabled()) return;
  for (const File& file : FilesIn(folder_)) fs::remove(file.path, error);
}

void DiskCache::Trim() {
  std::error_code error;
  std::vector<File> entries;
  std::uint64_t total = 0;
  for (File& file : FilesIn(folder_)) {
    if (file.kind == FileKind::kEntry) {
      total += file.size;
      entries.push_back(std::move(file));
    } else if (fs::file_time_type::clock::now() - file.time >
               std::chrono::hours(1)) {  // no write takes so long: its process has ended
      fs::remove(file.path, error);
    }
  }
  if (total <= max_bytes_) return;
  std::sort(entries.begin(), entries.end(), [](const File& a, const File& b) { return a.time < b.time; });
  // Down to three quarters, so that not every write has to trim.
  for (const File& entry : entries) {
    if (total <= max_bytes_ / 4 * 3) break;
    fs::remove(entry.path, error);
    total -= entry.size;
  }
}

}  // namespace umbra::runtime
