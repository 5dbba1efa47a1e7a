#if defined(__cplusplus) && __cplusplus >= 201703L && !defined(AOTC_CXX_1)
#define AOTC_CXX_1
#include <array>
#include <cstddef>
#include <stdexcept>
#include <type_traits>
#include <utility>
#if __has_include(<version>)
#include <version>
#endif
#ifdef __cpp_lib_mdspan
#include <mdspan>
#endif

// What the C++ functions of all libraries by aotc share.
namespace aotc {

// What a call came to. The message is valid until this thread's next call into the library.
class [[nodiscard]] status {
public:
  constexpr status(int32_t code, const char *message) noexcept : code_(code), message_(message) {}

  constexpr bool ok() const noexcept { return code_ == 0; }
  constexpr explicit operator bool() const noexcept { return ok(); }
  constexpr int32_t code() const noexcept { return code_; }
  constexpr const char *message() const noexcept { return message_; }
#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
  // std::runtime_error with the message, if the call failed.
  void or_throw() const {
    if (!ok()) {
      throw std::runtime_error(message_);
    }
  }
#endif

private:
  int32_t code_;
  const char *message_;
};

// A buffer: its first element, and as many of its sizes and strides as are said. Where the entry's
// type has all sizes, a pointer is enough; elements in a row (std::vector, std::array, std::span)
// say how many there are, which leaves room for one unknown size.
template <class T, int Rank> class buffer {
  static constexpr int places = Rank > 0 ? Rank : 1;

public:
  using sizes_type = std::array<int64_t, static_cast<std::size_t>(places)>;

  constexpr buffer(T *data) noexcept : data_(data) {}
  constexpr buffer(T *data, sizes_type sizes) noexcept
      : data_(data), sizes_(sizes), has_sizes_(true) {}

  template <class Elements, class Data = decltype(std::data(std::declval<Elements &>())),
            class = std::enable_if_t<std::is_convertible_v<
                std::remove_pointer_t<Data> (*)[], T (*)[]>>,
            class = decltype(std::size(std::declval<Elements &>()))>
  constexpr buffer(Elements &&elements) noexcept
      : data_(std::data(elements)), count_(static_cast<int64_t>(std::size(elements))) {}

#ifdef __cpp_lib_mdspan
  template <class U, class Extents, class Layout, class Accessor,
            class = std::enable_if_t<Extents::rank() == Rank &&
                                     std::is_convertible_v<U (*)[], T (*)[]>>>
  constexpr buffer(const std::mdspan<U, Extents, Layout, Accessor> &view) noexcept
      : data_(view.data_handle()), has_sizes_(true), has_strides_(true) {
    for (std::size_t i = 0; i < Extents::rank(); ++i) {
      sizes_[i] = static_cast<int64_t>(view.extent(i));
      strides_[i] = static_cast<int64_t>(view.stride(i));
    }
  }
#endif

  // Fills MLIR's descriptor of the buffer, for an entry whose sizes are `shape` (-1: any) and whose
  // strides are `strides` (null: row by row). False if what was said of the buffer does not do.
  template <class Memref>
  bool describe(Memref &memref, const int64_t *shape, const int64_t *strides) const noexcept {
    memref.allocated = memref.aligned = const_cast<std::remove_const_t<T> *>(data_);
    memref.offset = 0;
    if constexpr (Rank > 0) {
      int64_t known = 1;
      int unknown = 0, last_unknown = -1;
      for (int i = 0; i < Rank; ++i) {
        memref.sizes[i] = has_sizes_ ? sizes_[static_cast<std::size_t>(i)] : shape[i];
        if (memref.sizes[i] < 0) {
          ++unknown;
          last_unknown = i;
        } else {
          known *= memref.sizes[i];
        }
      }
      if (!has_sizes_ && count_ < 0 && unknown > 0) {
        return false;
      }
      if (!has_sizes_ && count_ >= 0) {
        if (unknown > 1 || (unknown == 0 && known != count_) ||
            (unknown == 1 && (known == 0 ? count_ != 0 : count_ % known != 0))) {
          return false;
        }
        if (unknown == 1) {
          memref.sizes[last_unknown] = known == 0 ? 0 : count_ / known;
        }
      }
      int64_t packed = 1;
      for (int i = Rank - 1; i >= 0; --i) {
        const bool is_given = strides != nullptr && strides[i] >= 0;
        memref.strides[i] = has_strides_ ? strides_[static_cast<std::size_t>(i)]
                                         : (is_given ? strides[i] : packed);
        packed *= memref.sizes[i] > 0 ? memref.sizes[i] : 1;
      }
    } else {
      return count_ < 0 || count_ == 1;
    }
    return true;
  }

  // Whether the elements lie as a pointer alone would say.
  constexpr bool is_plain() const noexcept { return !has_strides_; }

private:
  T *data_;
  int64_t count_ = -1;
  sizes_type sizes_{};
  sizes_type strides_{};
  bool has_sizes_ = false;
  bool has_strides_ = false;
};

} // namespace aotc
#endif // AOTC_CXX_1
