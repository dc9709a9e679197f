// Images of compiled kernels for several GPUs, and the choice among them.
#ifndef UMBRA_RUNTIME_CUDA_IMAGE_H_
#define UMBRA_RUNTIME_CUDA_IMAGE_H_

#include <string>
#include <string_view>
#include <vector>

namespace umbra::cuda {

/// A GPU architecture by its compute capability: "sm_90"; with 'a' what that capability alone has ("sm_90a"), with 'f'
/// what its family has.
struct Architecture {
  int major = 0, minor = 0;
  char suffix = 0;  ///< 'a', 'f' or 0

  /// Throws umbra::Error if `text` is not an architecture, saying what one looks like.
  static Architecture Parse(std::string_view text);
  std::string Name() const;  ///< "sm_90"
  bool operator==(const Architecture& other) const {
    return major == other.major && minor == other.minor && suffix == other.suffix;
  }
};

enum class ImageForm : unsigned char {
  kCubin,  ///< machine code: runs on its major architecture, from its minor one on
  kPtx,  ///< compiled by the driver: runs on its architecture and on later ones
};

struct Image {
  Architecture architecture;
  ImageForm form = ImageForm::kCubin;
  std::string bytes;
};

/// Does an image run on a device of compute capability `major`.`minor`?
bool RunsOn(const Image& image, int major, int minor);
/// The best image for a device: machine code before PTX, then the latest architecture. Throws umbra::Error that says
/// what there is and which architecture to add, naming the kernel.
const Image& PickImage(const std::vector<Image>& images, int major, int minor, const std::string& kernel);

/// Several images as one run of bytes, for files, object code and the disk cache.
std::string PackImages(const std::vector<Image>& images);
/// Throws umbra::Error if the bytes are not what PackImages gave.
std::vector<Image> UnpackImages(std::string_view bytes);

}  // namespace umbra::cuda

#endif  // UMBRA_RUNTIME_CUDA_IMAGE_H_
