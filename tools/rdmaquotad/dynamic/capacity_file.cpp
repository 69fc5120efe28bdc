#include "tools/rdmaquotad/dynamic/capacity_file.hpp"

#include "tools/common/text/file_text.hpp"
#include "tools/common/views/json.hpp"

namespace rdmaquota {

void CapacityFile::load(DeviceCapacity& capacity) {
    const auto json = Json::parse(file_text(path_), nullptr, false);
    if (json.is_array()) capacity.restore(json);
}

// A file that cannot be written is tried again only with other contents.
Result<void> CapacityFile::save(const DeviceCapacity& capacity) {
    auto text = dump(capacity.learned());
    if (text == saved_) return {};
    saved_ = std::move(text);
    return replace_file(path_, saved_ + "\n");
}

}  // namespace rdmaquota
