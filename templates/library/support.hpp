#if defined(__cplusplus) && __cplusplus >= 201703L && !defined(AOTC_CXX_1)
#define AOTC_CXX_1
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <type_traits>
#include <utility>
#if __has_include(<version>)
#include <version>
#endif
#ifdef __cpp_lib_mdspan
#include <mdspan>
#endif

// Common parts of the C++ functions of all aotc libraries. Headers with different versions can be
// included together.
namespace aotc {
inline namespace v1 {

// The result of a call. The message is valid until this thread's next call into the library.
class [[nodiscard]] status {
public:
  constexpr status(int32_t code, const char *message) noexcept : code_(code), message_(message) {
  }

  constexpr bool ok() const noexcept {
    return code_ == 0;
  }
  constexpr explicit operator bool() const noexcept {
    return ok();
  }
  constexpr int32_t code() const noexcept {
    return code_;
  }
  constexpr const char *message() const noexcept {
    return message_;
  }
#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
  // Throws std::runtime_error with the message if the call failed.
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

// A buffer: its first element, with its sizes and strides if they are given. If the entry's type
// has only static sizes, a pointer is enough. Contiguous containers (std::vector, std::array,
// std::span) give the number of elements, which determines one dynamic size.
template <class T, int Rank> class buffer {
  static constexpr int places = Rank > 0 ? Rank : 1;

public:
  using sizes_type = std::array<int64_t, static_cast<std::size_t>(places)>;

  // From a pointer, but not from an array, whose number of elements is known.
  template <class Pointer,
            class = std::enable_if_t<std::is_convertible_v<Pointer, T *> &&
                                     !std::is_array_v<std::remove_reference_t<Pointer>>>>
  constexpr buffer(Pointer &&data) noexcept : data_(data) {
  }
  constexpr buffer(T *data, sizes_type sizes) noexcept
      : data_(data), sizes_(sizes), has_sizes_(true) {
  }

  template <
      class Elements, class Data = decltype(std::data(std::declval<Elements &>())),
      class = std::enable_if_t<std::is_convertible_v<std::remove_pointer_t<Data> (*)[], T (*)[]>>,
      class = decltype(std::size(std::declval<Elements &>()))>
  constexpr buffer(Elements &&elements) noexcept
      : data_(std::data(elements)), count_(static_cast<int64_t>(std::size(elements))) {
  }

#ifdef __cpp_lib_mdspan
  template <
      class U, class Extents, class Layout, class Accessor,
      class = std::enable_if_t<Extents::rank() == Rank && std::is_convertible_v<U (*)[], T (*)[]>>>
  constexpr buffer(const std::mdspan<U, Extents, Layout, Accessor> &view) noexcept
      : data_(view.data_handle()), has_sizes_(true), has_strides_(true) {
    for (std::size_t i = 0; i < Extents::rank(); ++i) {
      sizes_[i] = static_cast<int64_t>(view.extent(i));
      strides_[i] = static_cast<int64_t>(view.stride(i));
    }
  }
#endif

  // Fills MLIR's descriptor of the buffer for an entry with the sizes `shape`, the strides
  // `strides` (null: row-major) and the offset `offset`; INT64_MIN is a dynamic size or stride.
  // False if the given sizes, strides or number of elements do not match.
  template <class Memref>
  bool describe(Memref &memref, const int64_t *shape, const int64_t *strides,
                int64_t offset) const noexcept {
    memref.allocated = memref.aligned = const_cast<std::remove_const_t<T> *>(data_);
    memref.offset = offset;
    const bool is_exact = strides == nullptr && offset == 0;
    if constexpr (Rank > 0) {
      if (!find_sizes(memref, shape, is_exact)) {
        return false;
      }
      for (int i = Rank - 1; i >= 0; --i) {
        memref.strides[i] = has_strides_ ? strides_[static_cast<std::size_t>(i)]
                                         : stride_of_type(memref, strides, i);
      }
      return count_ < 0 || reaches(memref);
    } else {
      return count_ < 0 || (is_exact ? count_ == 1 : count_ > offset);
    }
  }

  // Whether a pointer and the dynamic sizes are enough to describe `memref`, which `describe`
  // filled.
  template <class Memref>
  static bool is_plain(const Memref &memref, const int64_t *shape,
                       const int64_t *strides) noexcept {
    if constexpr (Rank > 0) {
      for (int i = 0; i < Rank; ++i) {
        if (shape[i] != INT64_MIN && memref.sizes[i] != shape[i]) {
          return false;
        }
      }
      if (is_empty(memref)) {
        return true;
      }
      for (int i = 0; i < Rank; ++i) {
        if (memref.sizes[i] > 1 && memref.strides[i] != stride_of_type(memref, strides, i)) {
          return false;
        }
      }
    }
    return true;
  }

private:
  // Uses the given sizes; otherwise those of the type, one of which may be dynamic.
  template <class Memref>
  bool find_sizes(Memref &memref, const int64_t *shape, bool is_exact) const noexcept {
    std::uint64_t known = 1;
    int open = -1;
    for (int i = 0; i < Rank; ++i) {
      memref.sizes[i] = has_sizes_ ? sizes_[static_cast<std::size_t>(i)] : shape[i];
      if (has_sizes_) {
        continue;
      }
      if (shape[i] != INT64_MIN) {
        known *= static_cast<std::uint64_t>(shape[i]);
      } else if (open >= 0 || count_ < 0) {
        return false;
      } else {
        open = i;
      }
    }
    if (has_sizes_ || count_ < 0) {
      return true;
    }
    const auto count = static_cast<std::uint64_t>(count_);
    if (open < 0) {
      return known == count || !is_exact;
    }
    memref.sizes[open] = known == 0 ? 0 : static_cast<int64_t>(count / known);
    return known == 0 ? count == 0 : count % known == 0;
  }

  // The stride in the type; if it is dynamic, the stride that packs the inner dimensions. The
  // arithmetic is unsigned: the entry rejects sizes that overflow.
  template <class Memref>
  static int64_t stride_of_type(const Memref &memref, const int64_t *strides, int i) noexcept {
    if (strides != nullptr && strides[i] != INT64_MIN) {
      return strides[i];
    }
    if (i + 1 >= Rank) {
      return 1;
    }
    const int64_t size = memref.sizes[i + 1], stride = stride_of_type(memref, strides, i + 1);
    const auto bits = static_cast<std::uint64_t>(stride);
    const std::uint64_t step = stride < 0 ? 0 - bits : bits;
    return static_cast<int64_t>((size > 1 ? static_cast<std::uint64_t>(size) : 1) *
                                (step > 0 ? step : 1));
  }

  template <class Memref> static bool is_empty(const Memref &memref) noexcept {
    for (int i = 0; i < Rank; ++i) {
      if (memref.sizes[i] == 0) {
        return true;
      }
    }
    return false;
  }

  // Whether all elements of `memref` are among the count_ elements.
  template <class Memref> bool reaches(const Memref &memref) const noexcept {
    int64_t first = memref.offset, last = memref.offset;
    for (int i = 0; i < Rank; ++i) {
      (memref.strides[i] < 0 ? first : last) += (memref.sizes[i] - 1) * memref.strides[i];
    }
    return is_empty(memref) || (first >= 0 && last < count_);
  }

  T *data_;
  int64_t count_ = -1;
  sizes_type sizes_{};
  sizes_type strides_{};
  bool has_sizes_ = false;
  bool has_strides_ = false;
};

} // namespace v1
} // namespace aotc
#endif // AOTC_CXX_1
