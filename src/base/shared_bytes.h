// Memory that processes of one user share: the first one makes, fills and seals it, and others find
// it by its name. It is no file, and goes with the last process that holds it, however that ends.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace heed {

class SharedBytes {
 public:
  // Whether this process shares what it can: the environment has HEED_SHARE, and not as 0 or "".
  static bool are_wanted();

  // Sealed memory of that name and size which a process of this user holds, this one too; null
  // where the system shows none.
  static std::shared_ptr<SharedBytes> find(const std::string& name, std::size_t size);
  // Zeroed memory to fill and seal. Null where the system has none to share, or too little.
  static std::shared_ptr<SharedBytes> make(const std::string& name, std::size_t size);

  ~SharedBytes();
  SharedBytes(const SharedBytes&) = delete;
  SharedBytes& operator=(const SharedBytes&) = delete;

  std::byte* data() const { return data_; }  // to be read alone, once it is sealed
  std::size_t size() const { return size_; }
  bool is_sealed() const { return is_sealed_; }

  // From now on nobody can write to it, and others find it. Its address stays. Where the system
  // refuses, it stays this process's own. Throws Error{out_of_memory} where it cannot be mapped
  // again.
  void seal();

 private:
  SharedBytes(int descriptor, std::byte* data, std::size_t size)
      : descriptor_(descriptor), data_(data), size_(size) {}

  [[maybe_unused]] int descriptor_;  // others find the memory by it
  std::byte* data_;
  std::size_t size_;
  bool is_sealed_ = false;
};

}  // namespace heed
