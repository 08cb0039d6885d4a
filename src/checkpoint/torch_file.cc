#include "checkpoint/torch_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/utf8.h"
#include "checkpoint/zip_directory.h"

namespace heed {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are read as they lie");

using enum ErrorCode;

constexpr std::size_t max_values = std::size_t{1} << 22;  // that a pickle makes
// What a value holds is copied where it is recalled: a small file could ask for much.
constexpr std::size_t max_key_bytes = 255;

// What instructions of a pickle make. Only what state dictionaries consist of.
struct PickleValue;
using PicklePointer = const PickleValue*;  // owned by the reader, so that cycles do no harm

struct PickleNothing {};  // None, an object's state, or whatever else is not looked at
struct PickleName {       // of a class or function that is known
  std::string module, name;
};
struct PickleList {
  std::vector<PicklePointer> items;
};
struct PickleTuple {
  std::vector<PicklePointer> items;
};
struct PickleDictionary {
  std::vector<std::pair<PicklePointer, PicklePointer>> items;
};
struct PickleStorage {  // the numbers of one or more tensors
  DType dtype = DType::f32;
  std::string key;  // the name of its file
};
struct PickleTensor {
  PickleStorage storage;
  std::int64_t offset = 0;  // numbers before its first
  std::vector<std::int64_t> extents, strides;
};
struct PickleValue {
  std::variant<PickleNothing, bool, std::int64_t, std::string, PickleName, PickleList, PickleTuple,
               PickleDictionary, PickleStorage, PickleTensor>
      held;
};

struct StorageName {
  std::string_view name;
  DType dtype;
};
constexpr std::array storage_names = {
    StorageName{"FloatStorage", DType::f32},     StorageName{"HalfStorage", DType::f16},
    StorageName{"BFloat16Storage", DType::bf16}, StorageName{"DoubleStorage", DType::f64},
    StorageName{"LongStorage", DType::i64},      StorageName{"IntStorage", DType::i32},
    StorageName{"ShortStorage", DType::i16},     StorageName{"CharStorage", DType::i8},
    StorageName{"ByteStorage", DType::u8},       StorageName{"BoolStorage", DType::boolean}};

// Reads the instructions front to back; none of them calls or imports anything.
class PickleReader {
 public:
  PickleReader(std::span<const std::byte> bytes, const std::string& source)
      : bytes_(bytes), source_(source) {}

  PicklePointer read() {
    while (true) {
      const std::size_t at = at_;
      const auto instruction = static_cast<char>(take<std::uint8_t>());
      if (instruction == '.') return pop();
      run(instruction, at);
    }
  }

 private:
  template <class Number>
  Number take() {
    Number value;
    const std::string_view bytes = take_text(sizeof(Number));
    std::memcpy(&value, bytes.data(), sizeof(Number));
    return value;
  }
  std::string_view take_text(std::uint64_t size) {
    require(size <= bytes_.size() - at_, corrupt_data, "{}: ends within an instruction at byte {}",
            source_, at_);
    const std::string_view taken(reinterpret_cast<const char*>(bytes_.data()) + at_,
                                 static_cast<std::size_t>(size));
    at_ += static_cast<std::size_t>(size);
    return taken;
  }
  std::string_view take_line() {
    const std::string_view rest(reinterpret_cast<const char*>(bytes_.data()) + at_,
                                bytes_.size() - at_);
    const std::size_t end = rest.find('\n');
    require(end != std::string_view::npos, corrupt_data, "{}: ends within a name at byte {}",
            source_, at_);
    at_ += end + 1;
    return rest.substr(0, end);
  }

  template <class Held>
  void push(Held held) {
    count_value();
    stack_.push_back(&values_.emplace_back(PickleValue{std::move(held)}));
  }
  void count_value() {
    require(++made_ <= max_values, unsupported, "{}: makes more than {} values", source_,
            max_values);
  }
  PicklePointer pop() {
    require(!stack_.empty() && (marks_.empty() || stack_.size() > marks_.back()), corrupt_data,
            "{}: takes a value at byte {} where there is none", source_, at_);
    PicklePointer value = stack_.back();
    stack_.pop_back();
    return value;
  }
  std::vector<PicklePointer> pop_to_mark() {
    require(!marks_.empty(), corrupt_data, "{}: has no mark at byte {}", source_, at_);
    const std::vector<PickleValue*> values(
        stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return {values.begin(), values.end()};
  }
  template <class Held>
  Held& top(std::string_view wanted) {
    const bool is_there = !stack_.empty() && (marks_.empty() || stack_.size() > marks_.back());
    Held* const held = is_there ? std::get_if<Held>(&stack_.back()->held) : nullptr;
    require(held != nullptr, corrupt_data, "{}: changes what is no {} at byte {}", source_, wanted,
            at_);
    return *held;
  }
  template <class Held>
  const Held& need(const PicklePointer& value, std::string_view wanted) const {
    const Held* const held = std::get_if<Held>(&value->held);
    require(held != nullptr, corrupt_data, "{}: has something else than {} before byte {}", source_,
            wanted, at_);
    return *held;
  }

  void run(char instruction, std::size_t at) {
    switch (instruction) {
      case '\x80': take<std::uint8_t>(); return;   // the version of the protocol
      case '\x95': take<std::uint64_t>(); return;  // a frame's length
      case '(': marks_.push_back(stack_.size()); return;
      case 'N': return push(PickleNothing{});
      case '\x88': return push(true);
      case '\x89': return push(false);
      case 'K': return push(std::int64_t{take<std::uint8_t>()});
      case 'M': return push(std::int64_t{take<std::uint16_t>()});
      case 'J': return push(std::int64_t{take<std::int32_t>()});
      case '\x8a': return push_long(take<std::uint8_t>());
      case 'G': take<std::uint64_t>(); return push(PickleNothing{});  // a float
      case 'X': return push_text(take<std::uint32_t>());
      case '\x8c': return push_text(take<std::uint8_t>());
      case '}': return push(PickleDictionary{});
      case ']': return push(PickleList{});
      case ')': return push(PickleTuple{});
      case 't': return push(PickleTuple{pop_to_mark()});
      case '\x85': return push_tuple(1);
      case '\x86': return push_tuple(2);
      case '\x87': return push_tuple(3);
      case 's': {
        const PicklePointer value = pop(), key = pop();
        return set_items({key, value});
      }
      case 'u': return set_items(pop_to_mark());
      case 'a': return append({pop()});
      case 'e': return append(pop_to_mark());
      case 'q': return keep(take<std::uint8_t>());
      case 'r': return keep(take<std::uint32_t>());
      case '\x94': return keep(static_cast<std::uint32_t>(kept_.size()));
      case 'h': return recall(take<std::uint8_t>());
      case 'j': return recall(take<std::uint32_t>());
      case 'c': {
        const std::string_view module = take_line();
        return push_name(std::string(module), std::string(take_line()));
      }
      case '\x93': {
        const PicklePointer name = pop(), module = pop();
        return push_name(need<std::string>(module, "a text"), need<std::string>(name, "a text"));
      }
      case 'Q': return push_storage(pop());
      case 'R': {
        const PicklePointer values = pop(), function = pop();
        return make(need<PickleName>(function, "a name"),
                    need<PickleTuple>(values, "a tuple").items);
      }
      case 'b': pop(); return;  // an object's state: the versions of a dictionary's modules
      default: break;
    }
    fail(unsupported,
         "{}: has the instruction 0x{:02X} of pickle at byte {}; a file of tensors needs none",
         source_, static_cast<unsigned char>(instruction), at);
  }

  void push_long(std::size_t size) {
    require(size <= 8, unsupported, "{}: has a number of {} bytes at byte {}; the most is 8",
            source_, size, at_);
    std::uint64_t bits = 0;
    const std::string_view bytes = take_text(size);
    for (std::size_t i = 0; i < size; ++i) {
      bits |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    }
    const bool is_negative = size > 0 && (bytes[size - 1] & 0x80) != 0;
    if (is_negative && size < 8) bits |= ~std::uint64_t{0} << (8 * size);
    push(static_cast<std::int64_t>(bits));
  }

  void push_text(std::uint64_t size) { push(std::string(take_text(size))); }

  void push_tuple(std::size_t size) {
    PickleTuple tuple;
    for (std::size_t i = 0; i < size; ++i) tuple.items.insert(tuple.items.begin(), pop());
    push(std::move(tuple));
  }

  void set_items(const std::vector<PicklePointer>& items) {
    require(items.size() % 2 == 0, corrupt_data, "{}: sets a key without a value at byte {}",
            source_, at_);
    auto& dictionary = top<PickleDictionary>("dictionary").items;
    for (std::size_t i = 0; i < items.size(); i += 2) {
      dictionary.emplace_back(items[i], items[i + 1]);
    }
  }

  void append(const std::vector<PicklePointer>& items) {
    auto& list = top<PickleList>("list").items;
    list.insert(list.end(), items.begin(), items.end());
  }

  void keep(std::uint32_t index) {
    require(!stack_.empty(), corrupt_data, "{}: keeps nothing at byte {}", source_, at_);
    kept_[index] = stack_.back();
  }
  void recall(std::uint32_t index) {
    const auto found = kept_.find(index);
    require(found != kept_.end(), corrupt_data,
            "{}: recalls value {} at byte {}, which it has not kept", source_, index, at_);
    count_value();
    stack_.push_back(found->second);
  }

  void push_name(std::string module, std::string name) {
    const bool is_storage =
        module == "torch" &&
        std::ranges::find(storage_names, name, &StorageName::name) != storage_names.end();
    const bool is_known = is_storage || (module == "collections" && name == "OrderedDict") ||
                          (module == "torch._utils" &&
                           (name == "_rebuild_tensor_v2" || name == "_rebuild_parameter"));
    require(is_known, unsupported,
            "{}: names {}, which makes no tensor; files that need more than tensors are not read",
            source_, in_quotes(module + "." + name));
    push(PickleName{std::move(module), std::move(name)});
  }

  // ('storage', class, key, place, numbers)
  void push_storage(const PicklePointer& value) {
    const auto& items = need<PickleTuple>(value, "a storage's tuple").items;
    require(
        items.size() == 5 && need<std::string>(items[0], "a text") == "storage", corrupt_data,
        "{}: has a storage of {} parts at byte {}; expected 'storage', its class, key, place and "
        "size",
        source_, items.size(), at_);
    const auto& kind = need<PickleName>(items[1], "a storage's class");
    const auto* const found = std::ranges::find(storage_names, kind.name, &StorageName::name);
    require(found != storage_names.end(), corrupt_data, "{}: has {} for a storage's class", source_,
            in_quotes(kind.name));
    const std::string& key = need<std::string>(items[2], "a key");
    require(key.size() <= max_key_bytes, unsupported,
            "{}: has a storage's key of {} bytes at byte {}; the most is {}", source_, key.size(),
            at_, max_key_bytes);
    push(PickleStorage{found->dtype, key});
  }

  void make(const PickleName& function, const std::vector<PicklePointer>& values) {
    if (function.name == "OrderedDict") return push(PickleDictionary{});
    if (function.name == "_rebuild_parameter") {
      require(!values.empty(), corrupt_data, "{}: makes a parameter of nothing at byte {}", source_,
              at_);
      return push(PickleTensor(need<PickleTensor>(values[0], "a tensor")));
    }
    require(function.name == "_rebuild_tensor_v2" && values.size() >= 4, corrupt_data,
            "{}: calls {} with {} values at byte {}", source_, in_quotes(function.name),
            values.size(), at_);
    const auto integers = [&](const PicklePointer& value) {
      const std::vector<PicklePointer>& items = need<PickleTuple>(value, "a tuple").items;
      require(items.size() <= static_cast<std::size_t>(Shape::max_rank), unsupported,
              "{}: has a tensor of {} dimensions at byte {}; the most is {}", source_, items.size(),
              at_, Shape::max_rank);
      std::vector<std::int64_t> read;
      for (const PicklePointer& item : items) {
        read.push_back(need<std::int64_t>(item, "an integer"));
      }
      return read;
    };
    push(PickleTensor{.storage = need<PickleStorage>(values[0], "a storage"),
                      .offset = need<std::int64_t>(values[1], "an integer"),
                      .extents = integers(values[2]),
                      .strides = integers(values[3])});
  }

  std::span<const std::byte> bytes_;
  const std::string& source_;
  std::size_t at_ = 0;
  std::size_t made_ = 0;
  std::deque<PickleValue> values_;  // all that was made
  std::vector<PickleValue*> stack_;
  std::vector<std::size_t> marks_;
  std::map<std::uint32_t, PickleValue*> kept_;
};

// The tensors of a dictionary.
class TensorCollector {
 public:
  TensorCollector(const std::map<std::string, std::span<const std::byte>>& files,
                  std::string folder, const std::string& source)
      : files_(files), folder_(std::move(folder)), source_(source) {}

  std::vector<TensorEntry> collect(const PickleValue& value) const {
    const auto* const dictionary = std::get_if<PickleDictionary>(&value.held);
    require(dictionary != nullptr, unsupported, "{}: is no dictionary of tensors", source_);
    std::map<std::string, bool> names;
    std::vector<TensorEntry> tensors;
    for (const auto& [key, item] : dictionary->items) {
      const auto* const name = std::get_if<std::string>(&key->held);
      const auto* const tensor = std::get_if<PickleTensor>(&item->held);
      require(name != nullptr && tensor != nullptr, unsupported,
              "{}: entry {} of its dictionary is no tensor with a name", source_,
              name != nullptr ? in_quotes(*name) : std::to_string(tensors.size()));
      require(names.emplace(*name, true).second, corrupt_data, "{}: holds tensor '{}' twice",
              source_, *name);
      tensors.push_back(entry(*name, *tensor));
    }
    return tensors;
  }

 private:
  TensorEntry entry(const std::string& name, const PickleTensor& tensor) const {
    require(is_valid_utf8(name), corrupt_data, "{}: a tensor's name, {}, is not text in UTF-8",
            source_, in_quotes(name));
    require(tensor.extents.size() <= static_cast<std::size_t>(Shape::max_rank) &&
                tensor.extents.size() == tensor.strides.size(),
            unsupported, "{}: tensor '{}' has {} dimensions and {} strides; the most is {}",
            source_, name, tensor.extents.size(), tensor.strides.size(), Shape::max_rank);
    std::int64_t size = 1;
    for (std::size_t i = tensor.extents.size(); i-- > 0;) {
      const std::int64_t extent = tensor.extents[i];
      require(
          extent == 1 || tensor.strides[i] == size, unsupported,
          "{}: tensor '{}' is stored with stride {} in dimension {}; expected {}: save it after "
          "contiguous()",
          source_, name, tensor.strides[i], i, size);
      require(extent > 0 && !__builtin_mul_overflow(size, extent, &size), corrupt_data,
              "{}: tensor '{}' has an extent of {} in dimension {}", source_, name, extent, i);
    }
    const auto file = files_.find(folder_ + "data/" + tensor.storage.key);
    require(file != files_.end(), corrupt_data, "{}: tensor '{}' is in {}, which is missing",
            source_, name, in_quotes(folder_ + "data/" + tensor.storage.key));
    const auto width = static_cast<std::int64_t>(dtype_size(tensor.storage.dtype));
    const std::int64_t held = std::ssize(file->second) / width;
    require(tensor.offset >= 0 && tensor.offset <= held && size <= held - tensor.offset,
            corrupt_data, "{}: tensor '{}' needs {} numbers from {} on, but its storage holds {}",
            source_, name, size, tensor.offset, held);
    return {.name = name,
            .dtype = tensor.storage.dtype,
            .shape = Shape(tensor.extents.data(), static_cast<int>(tensor.extents.size())),
            .bytes = file->second.subspan(static_cast<std::size_t>(tensor.offset * width),
                                          static_cast<std::size_t>(size * width))};
  }

  const std::map<std::string, std::span<const std::byte>>& files_;
  std::string folder_;
  const std::string& source_;
};

}  // namespace

TorchFile TorchFile::open(const std::filesystem::path& path) {
  MappedFile mapped(path);
  TorchFile file = parse(mapped.bytes(), fmt::format("'{}'", path.string()));
  file.file_ = std::move(mapped);
  return file;
}

TorchFile TorchFile::parse(std::span<const std::byte> bytes, std::string source) {
  TorchFile file;
  file.source_ = std::move(source);
  const auto files = read_zip_directory(bytes, file.source_);
  constexpr std::string_view pickle_name = "data.pkl";
  const auto pickle = std::ranges::find_if(files, [&](const auto& each) {
    const std::string& name = each.first;
    return name.ends_with(pickle_name) && std::ranges::count(name, '/') == 1;
  });
  require(pickle != files.end(), corrupt_data, "{}: holds no FOLDER/{}", file.source_, pickle_name);
  const std::string folder = pickle->first.substr(0, pickle->first.size() - pickle_name.size());
  const auto order = files.find(folder + "byteorder");
  const bool is_little =
      order == files.end() || std::string_view(reinterpret_cast<const char*>(order->second.data()),
                                               order->second.size()) == "little";
  require(is_little, unsupported, "{}: is written big-endian; only little-endian files are read",
          file.source_);
  const std::string where = file.source_ + ": " + pickle->first;
  PickleReader reader(pickle->second, where);
  const PicklePointer value = reader.read();
  file.tensors_ = TensorCollector(files, folder, file.source_).collect(*value);
  return file;
}

}  // namespace heed
