#include "runtime/cuda_image.h"

#include <xxhash.h>

#include <charconv>
#include <cstdint>
#include <cstring>
#include <tuple>

#include "umbra/error.h"

namespace umbra::cuda {

Architecture Architecture::Parse(std::string_view text) {
  Architecture architecture;
  int number = 0;
  std::string_view digits = text;
  const bool named = digits.substr(0, 3) == "sm_";
  if (named) digits.remove_prefix(3);
  if (!digits.empty() && (digits.back() == 'a' || digits.back() == 'f')) {
    architecture.suffix = digits.back();
    digits.remove_suffix(1);
  }
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  Require(named && error == std::errc() && end == digits.data() + digits.size() && 10 <= number && number <= 999, "'",
          text, "' is no GPU architecture; one is written like sm_80 (A100), sm_90 (H100, H200) or sm_100 (B200)");
  architecture.major = number / 10;
  architecture.minor = number % 10;
  return architecture;
}

std::string Architecture::Name() const {
  std::string name = "sm_" + std::to_string(major * 10 + minor);
  if (suffix != 0) name += suffix;
  return name;
}

bool RunsOn(const Image& image, int major, int minor) {
  const Architecture& a = image.architecture;
  if (a.suffix == 'a') return a.major == major && a.minor == minor;
  if (a.suffix == 'f' || image.form == ImageForm::kCubin) return a.major == major && a.minor <= minor;
  return std::tie(a.major, a.minor) <= std::tie(major, minor);
}

const Image& PickImage(const std::vector<Image>& images, int major, int minor, const std::string& kernel) {
  const auto rank = [](const Image& image) {
    return std::make_tuple(image.form == ImageForm::kCubin, image.architecture.major, image.architecture.minor,
                           image.architecture.suffix != 0);
  };
  const Image* best = nullptr;
  std::string there;
  for (const Image& image : images) {
    there += (there.empty() ? "" : ", ") + image.architecture.Name() + (image.form == ImageForm::kPtx ? " (PTX)" : "");
    if (RunsOn(image, major, minor) && (best == nullptr || rank(*best) < rank(image))) best = &image;
  }
  Require(best != nullptr, "kernel '", kernel, "' has no image for a GPU of compute capability ", major, ".", minor,
          ": there ", images.empty() ? "is none" : "is " + there, "; compile it for ",
          Architecture{major, minor, 0}.Name(), " as well");
  return *best;
}

namespace {

constexpr std::string_view kMagic = "UMBRAGPU";

struct PackedImage {  // followed by the bytes of all
  std::uint32_t major, minor, suffix, form;
  std::uint64_t length;
};

template <typename T>
void Append(std::string* bytes, const T& value) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

std::string PackImages(const std::vector<Image>& images) {
  std::string body;
  Append(&body, static_cast<std::uint64_t>(images.size()));
  for (const Image& image : images) {
    const Architecture& a = image.architecture;
    Append(&body, PackedImage{static_cast<std::uint32_t>(a.major), static_cast<std::uint32_t>(a.minor),
                              static_cast<std::uint32_t>(a.suffix), static_cast<std::uint32_t>(image.form),
                              image.bytes.size()});
  }
  for (const Image& image : images) body += image.bytes;
  std::string packed(kMagic);
  Append(&packed, static_cast<std::uint64_t>(XXH3_64bits(body.data(), body.size())));
  return packed + body;
}

std::vector<Image> UnpackImages(std::string_view bytes) {
  const auto need = [](bool holds) {
    Require(holds, "these bytes are no table of GPU images, or are damaged; build it anew");
  };
  const auto take = [&](void* to, std::size_t count) {
    need(bytes.size() >= count);
    std::memcpy(to, bytes.data(), count);
    bytes.remove_prefix(count);
  };
  need(bytes.substr(0, kMagic.size()) == kMagic);
  bytes.remove_prefix(kMagic.size());
  std::uint64_t checksum = 0, count = 0;
  take(&checksum, sizeof checksum);
  need(XXH3_64bits(bytes.data(), bytes.size()) == checksum);
  take(&count, sizeof count);
  need(count <= bytes.size() / sizeof(PackedImage));
  std::vector<PackedImage> heads(count);
  for (PackedImage& head : heads) take(&head, sizeof head);
  std::vector<Image> images;
  for (const PackedImage& head : heads) {
    need(head.length <= bytes.size() && head.form <= 1);
    images.push_back({{static_cast<int>(head.major), static_cast<int>(head.minor), static_cast<char>(head.suffix)},
                      static_cast<ImageForm>(head.form),
                      std::string(bytes.substr(0, head.length))});
    bytes.remove_prefix(head.length);
  }
  need(bytes.empty());
  return images;
}

}  // namespace umbra::cuda
