#include "provider/adoption/verbs_objects.hpp"

#include <charconv>
#include <cstring>
#include <string_view>

#include "shm/same_file.hpp"

namespace rdmaquota::provider {
namespace {

constexpr std::string_view private_node = "IBVERBS_PRIVATE_";

// The number in the name of a version node of the private interface; 0 for other nodes.
unsigned pabi_in(const char* node) noexcept {
    if (std::strncmp(node, private_node.data(), private_node.size()) != 0) return 0;
    unsigned pabi = 0;
    const char* number = node + private_node.size();
    std::from_chars(number, number + std::strlen(number), pabi);
    return pabi;
}

// The version nodes that an object defines and needs. Null: none.
struct Versions {
    const char* strings = nullptr;
    const ElfW(Verdef)* defined = nullptr;
    const ElfW(Verneed)* needed = nullptr;
};

Versions versions_of(const dl_phdr_info& info) noexcept {
    Versions result;
    for (const auto* entry = dynamic_of(info); entry && entry->d_tag != DT_NULL; ++entry) switch (entry->d_tag) {
            case DT_STRTAB: result.strings = reinterpret_cast<const char*>(address_of(info.dlpi_addr, *entry)); break;
            case DT_VERDEF: result.defined = reinterpret_cast<const ElfW(Verdef)*>(address_of(info.dlpi_addr, *entry)); break;
            case DT_VERNEED: result.needed = reinterpret_cast<const ElfW(Verneed)*>(address_of(info.dlpi_addr, *entry)); break;
            default: break;
        }
    return result;
}

// The entry that lies `bytes` behind `entry`; null for 0, which ends a list.
template <class T, class From>
const T* behind(const From* entry, std::size_t bytes) noexcept {
    return bytes == 0 ? nullptr : reinterpret_cast<const T*>(reinterpret_cast<const char*>(entry) + bytes);
}

unsigned defined_pabi(const Versions& versions) noexcept {
    for (auto* node = versions.defined; node; node = behind<ElfW(Verdef)>(node, node->vd_next))
        if (const auto pabi = pabi_in(versions.strings + behind<ElfW(Verdaux)>(node, node->vd_aux)->vda_name)) return pabi;
    return 0;
}

unsigned needed_pabi(const Versions& versions) noexcept {
    for (auto* file = versions.needed; file; file = behind<ElfW(Verneed)>(file, file->vn_next))
        for (auto* node = behind<ElfW(Vernaux)>(file, file->vn_aux); node; node = behind<ElfW(Vernaux)>(node, node->vna_next))
            if (const auto pabi = pabi_in(versions.strings + node->vna_name)) return pabi;
    return 0;
}

int collect(dl_phdr_info* info, std::size_t, void* argument) {
    const auto versions = versions_of(*info);
    if (!versions.strings) return 0;
    const auto defined = defined_pabi(versions);
    const auto pabi = defined != 0 ? defined : needed_pabi(versions);
    if (pabi != 0)
        static_cast<std::vector<VerbsObject>*>(argument)->push_back(
            {info->dlpi_addr, info->dlpi_name, pabi, defined != 0, image_of(*info)});
    return 0;
}

// The text in the image that has `part` in it, up to there; empty where there is none that begins as a path.
std::string path_before(const Image& image, std::string_view part, std::size_t kept) {
    for (const auto& range : image.all) {
        const auto* const begin = reinterpret_cast<const char*>(range.begin);
        const auto* const found = static_cast<const char*>(memmem(begin, range.end - range.begin, part.data(), part.size()));
        if (!found) continue;
        const auto* first = found;
        while (first > begin && first[-1] != '\0') --first;
        if (*first == '/') return {first, found + kept};
    }
    return {};
}

}  // namespace

std::vector<VerbsObject> verbs_objects() {
    std::vector<VerbsObject> objects;
    dl_iterate_phdr(&collect, &objects);
    return objects;
}

VerbsDirectories directories_in(const Image& image) {
    constexpr std::string_view configuration = "/libibverbs.d", provider = "/lib%s-rdmav";
    VerbsDirectories found{path_before(image, configuration, configuration.size()), path_before(image, provider, 0)};
    if (found.configuration.empty()) found.configuration = RDMAQUOTA_DRIVER_DIR;
    if (found.providers.empty()) found.providers = RDMAQUOTA_PROVIDER_DIR;
    return found;
}

// The node's own is known by its place, without a search.
VerbsDirectories directories_of(const VerbsObject& library) {
    const auto name = library.path.rfind('/') + 1;
    if (library.path.compare(name, 13, "libibverbs.so") == 0 &&
        same_file(library.path.substr(0, name) + "libibverbs", RDMAQUOTA_PROVIDER_DIR))
        return {RDMAQUOTA_DRIVER_DIR, RDMAQUOTA_PROVIDER_DIR};
    return directories_in(library.image);
}

}  // namespace rdmaquota::provider
