#include "gpu/linear/packed_matrix.hpp"

#include <cstring>

#include "gpu/detail/packed_matrix_impl.hpp"

namespace twill::gpu {

packed_matrix::packed_matrix() = default;
packed_matrix::packed_matrix(packed_matrix&&) noexcept = default;
packed_matrix& packed_matrix::operator=(packed_matrix&&) noexcept = default;
packed_matrix::~packed_matrix() = default;

std::int64_t packed_matrix::rows() const {
  return impl_ ? impl_->view.rows : 0;
}
std::int64_t packed_matrix::cols() const {
  return impl_ ? impl_->view.cols : 0;
}
std::int64_t packed_matrix::bytes() const {
  if (!impl_) return 0;
  return static_cast<std::int64_t>(impl_->codes.device.bytes() + impl_->scales.device.bytes() +
                                   impl_->order.device.bytes());
}

std::int64_t packed_matrix::row_panels() const {
  return impl_ ? impl_->view.panels : 0;
}

image_layout packed_matrix::layout() const {
  TWILL_ASSERT(impl_ != nullptr, "layout: no matrix");
  return {impl_->view.codes_stride, impl_->view.scales_stride, impl_->order.bytes};
}

void packed_matrix::save_image(std::int64_t first_panel, std::int64_t n_panels, void* host) const {
  TWILL_ASSERT(impl_ != nullptr && impl_->codes.host, "save_image: the bytes are not on the host");
  TWILL_ASSERT(first_panel >= 0 && first_panel + n_panels <= impl_->view.panels,
               "save_image: panels outside the matrix");
  const image_layout at = layout();
  auto* to = static_cast<unsigned char*>(host);
  const auto copy = [to](std::int64_t offset, const unsigned char* from, std::int64_t bytes) {
    if (bytes > 0) std::memcpy(to + offset, from, static_cast<std::size_t>(bytes));
  };
  copy(0, impl_->codes.host.get() + first_panel * at.code_panel_bytes,
       n_panels * at.code_panel_bytes);
  if (at.scale_panel_bytes > 0)
    copy(at.scales_at(n_panels), impl_->scales.host.get() + first_panel * at.scale_panel_bytes,
         n_panels * at.scale_panel_bytes);
  copy(at.order_at(n_panels), impl_->order.host.get(), at.order_bytes);
}

void packed_matrix::drop_host_bytes() {
  impl_->codes.host.reset();
  impl_->scales.host.reset();
  impl_->order.host.reset();
}

packed_matrix packed_matrix::like(std::int64_t rows) const {
  TWILL_ASSERT(impl_ != nullptr && rows > 0, "like: no matrix, or no rows");
  packed_matrix unplaced;
  unplaced.impl_ = std::make_unique<impl>();
  impl& to = *unplaced.impl_;
  to.view = impl_->view;
  to.view.rows = rows;
  to.view.panels = (rows + detail::lanes - 1) / detail::lanes;
  to.order.bytes = impl_->order.bytes;
  unplaced.place(nullptr);
  return unplaced;
}

void packed_matrix::place(const void* image) {
  const image_layout at = layout();
  detail::packed_view& w = impl_->view;
  impl_->codes.bytes = w.panels * at.code_panel_bytes;
  impl_->scales.bytes = w.panels * at.scale_panel_bytes;
  const auto* from = static_cast<const unsigned char*>(image);
  w.codes = from;
  w.scales = from == nullptr || !w.grouped() ? nullptr : from + at.scales_at(w.panels);
  impl_->order_at = from == nullptr || at.order_bytes == 0
                        ? nullptr
                        : reinterpret_cast<const std::int32_t*>(from + at.order_at(w.panels));
}

bool packed_matrix::readable() const {
  return impl_ != nullptr && impl_->view.codes != nullptr;
}

} // namespace twill::gpu
