#include "shm/policy/node_policy.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "policy/braces.hpp"
#include "policy/pattern.hpp"
#include "shm/layout_version.hpp"
#include "shm/policy/node_image.hpp"

namespace rdmaquota {
namespace {

// Reads exactly `size` bytes; 0, or an errno number. A shorter file is EIO.
int read_bytes(int fd, std::byte* into, std::size_t size) noexcept {
    while (size > 0) {
        const auto bytes = ::read(fd, into, size);
        if (bytes < 0 && errno == EINTR) continue;
        if (bytes <= 0) return bytes < 0 ? errno : EIO;
        into += bytes;
        size -= static_cast<std::size_t>(bytes);
    }
    return 0;
}

struct FileBytes {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
};

bool has_right_size(const NodeHeader& header, std::size_t size) noexcept {
    const auto needed = sizeof(NodeHeader) + std::uint64_t{header.tenant_count} * sizeof(CompiledTenant) +
                        std::uint64_t{header.match_count} * sizeof(CompiledMatch) + sizeof(CompiledSidecar) +
                        header.text_bytes;
    return header.file_bytes == size && needed == size;
}

// Unless `all`, the sidecar's part stays undefined.
int read_parts(int fd, const FileBytes& file, bool all) noexcept {
    auto* bytes = file.bytes.get();
    if (all) return read_bytes(fd, bytes, file.size);
    if (const int error = read_bytes(fd, bytes, sizeof(NodeHeader))) return error;
    const auto& header = *reinterpret_cast<const NodeHeader*>(bytes);
    if (!has_right_size(header, file.size)) return 0;  // which is found out later
    const auto before = file.size - header.text_bytes - sizeof(CompiledSidecar);
    if (const int error = read_bytes(fd, bytes + sizeof(NodeHeader), before - sizeof(NodeHeader))) return error;
    if (lseek(fd, sizeof(CompiledSidecar), SEEK_CUR) < 0) return errno;
    return read_bytes(fd, bytes + file.size - header.text_bytes, header.text_bytes);
}

Result<FileBytes> read_open_file(int fd, bool all) {
    struct stat status {};
    if (fstat(fd, &status) != 0) return Error{std::strerror(errno)};
    if (!S_ISREG(status.st_mode)) return Error{"it is not a regular file"};
    const auto size = static_cast<std::size_t>(status.st_size);
    if (size < sizeof(NodeHeader) || size > largest_node_policy)
        return Error{fmt::format("it has {} bytes", status.st_size)};
    FileBytes file{std::unique_ptr<std::byte[]>(new (std::nothrow) std::byte[size]), size};
    const int error = file.bytes ? read_parts(fd, file, all) : ENOMEM;
    if (error != 0) return Error{std::strerror(error)};
    return file;
}

int open_file(const std::string& path) noexcept { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); }

Result<FileBytes> read_file(const std::string& path, bool all) {
    const int fd = open_file(path);
    if (fd < 0) return Error{std::strerror(errno)};
    auto file = read_open_file(fd, all);
    close(fd);
    return file;
}

Result<void> check_header(const NodeHeader& header, std::size_t size) {
    if (header.magic != node_policy_magic) return Error{"it is not a compiled policy"};
    if (header.layout_version != layout_version)
        return Error{
            fmt::format("its layout version is {}, this rdmaquota needs {}", header.layout_version, layout_version)};
    if (!has_right_size(header, size)) return Error{"it is damaged"};
    return {};
}

// Whether every span lies in the text, every match belongs to a tenant, and no pattern takes long.
bool is_sound(const NodePolicy::Image& image) noexcept {
    const std::uint64_t text_bytes = image.header().text_bytes;
    const auto inside = [&](TextSpan span) { return std::uint64_t{span.offset} + span.length <= text_bytes; };
    const auto is_pattern = [&](TextSpan span) { return inside(span) && span.length <= longest_pattern; };
    const auto tenants = image.tenants();
    const auto tenant_is_sound = [&](const CompiledTenant& tenant) {
        return inside(tenant.name) && tenant.name.length < tenant_name_bytes;
    };
    const auto match_is_sound = [&](const CompiledMatch& match) {
        return match.tenant < tenants.size() && is_pattern(match.cgroup) && is_pattern(match.unit) &&
               inside(match.user_name) && inside(match.group_name) && inside(match.members);
    };
    return inside(image.header().log_file) && inside(image.header().metrics) && std::all_of(tenants.begin(), tenants.end(), tenant_is_sound) &&
           std::all_of(image.matches().begin(), image.matches().end(), match_is_sound);
}

Result<NodePolicy::Image> load_image(const std::string& path, bool all) {
    auto file = read_file(path, all);
    if (!file) return Error{file.error()};
    NodePolicy::Image image{std::move(file->bytes)};
    if (const auto checked = check_header(image.header(), file->size); !checked) return Error{checked.error()};
    if (!is_sound(image)) return Error{"it is damaged"};
    return image;
}

bool has(std::uint32_t flags, std::uint32_t bits) noexcept { return (flags & bits) != 0; }

bool ids_fit(const CompiledMatch& match, const Subject& subject) noexcept {
    if (has(match.flags, CompiledMatch::unknown_user | CompiledMatch::unknown_group)) return false;
    if (has(match.flags, CompiledMatch::by_user) && subject.user != match.user) return false;
    if (!has(match.flags, CompiledMatch::by_group)) return true;
    return subject.group == match.group ||
           std::find(subject.groups.begin(), subject.groups.end(), match.group) != subject.groups.end();
}

// What stands for "{NAME}" in a template's name: in the tenant's key, and in a name whose form can be checked.
struct Element {
    std::string key, checked;
};

std::optional<Element> element_for(std::string_view name, const Captures& captures, std::optional<uid_t> user) {
    if (name == user_braces)
        return user ? std::optional(Element{user_element(*user), fmt::format_int(*user).str()}) : std::nullopt;
    for (std::size_t i = 0; i < std::min(captures.count, captures.list.size()); ++i)
        if (captures.list[i].name == name)
            return Element{std::string(captures.list[i].value), std::string(captures.list[i].value)};
    return std::nullopt;
}

// The key of the tenant `name`, or of this instance of the template `name`; none when there can be no such tenant.
std::optional<std::string> key_of(std::string_view name, const Captures& captures, std::optional<uid_t> user) {
    std::string key, checked;
    for (;;) {
        const auto braces = take_braces(name);
        if (!braces) return std::nullopt;
        if (!braces.value()) break;
        const auto element = element_for(braces.value()->name, captures, user);
        if (!element) return std::nullopt;
        key.append(braces.value()->before).append(element->key);
        checked.append(braces.value()->before).append(element->checked);
    }
    key.append(name);
    checked.append(name);
    if (key.size() >= tenant_name_bytes || !check_tenant_name(checked)) return std::nullopt;
    return key;
}

}  // namespace

NodePolicy::NodePolicy(std::unique_ptr<Image> image) noexcept : image_(std::move(image)) {}
NodePolicy::NodePolicy(NodePolicy&&) noexcept = default;
NodePolicy& NodePolicy::operator=(NodePolicy&&) noexcept = default;
NodePolicy::~NodePolicy() = default;

Result<NodePolicy> NodePolicy::read(const std::string& path, Parts parts) {
    auto image = load_image(path, parts == Parts::all);
    if (image) return NodePolicy(std::make_unique<Image>(std::move(*image)));
    return Error{
        fmt::format("cannot use the policy {}: {}; run 'rdmaquota reload' as root to write it", path, image.error())};
}

std::uint64_t NodePolicy::id() const noexcept { return image_->header().id; }

std::string NodePolicy::rules() const {
    std::string rules;
    for (const auto& tenant : image_->tenants()) rules.append(image_->text(tenant.name)).push_back('\0');
    const auto matches = std::as_bytes(image_->matches());
    rules.append(reinterpret_cast<const char*>(matches.data()), matches.size());
    return rules.append(image_->text({0, image_->header().text_bytes}));
}

bool NodePolicy::asks_for_ids() const noexcept { return has(image_->header().flags, NodeHeader::asks_for_ids); }

std::optional<bool> NodePolicy::hides_devices(const std::string& path) noexcept {
    NodeHeader header{};
    const int fd = open_file(path);
    if (fd < 0) return std::nullopt;
    const bool whole = ::read(fd, &header, sizeof header) == sizeof header;
    close(fd);
    if (!whole || header.magic != node_policy_magic || header.layout_version != layout_version) return std::nullopt;
    return has(header.flags, NodeHeader::hides_devices);
}

bool NodePolicy::asks_for_cgroup() const noexcept { return has(image_->header().flags, NodeHeader::asks_for_cgroup); }

NodePolicy::Verdict NodePolicy::find(const Subject& subject) const {
    bool hidden = false;
    for (const auto& match : image_->matches()) {
        if (!ids_fit(match, subject)) continue;
        Captures captures;
        if (has(match.flags, CompiledMatch::by_cgroup | CompiledMatch::by_unit)) {
            hidden = hidden || subject.cgroup.empty();
            if (subject.cgroup.empty()) continue;
            if (has(match.flags, CompiledMatch::by_unit) && !unit_matches(image_->text(match.unit), subject.cgroup))
                continue;
            if (has(match.flags, CompiledMatch::by_cgroup) &&
                !cgroup_matches(image_->text(match.cgroup), subject.cgroup, captures))
                continue;
        }
        const auto from = image_->text(image_->tenants()[match.tenant].name);
        // What is captured, users may have chosen: it leads into no other tenant of the policy.
        const auto key = key_of(from, captures, subject.user);
        if (key && (*key == from || !image_->names_tenant(*key)))
            return {*key, std::string(from), match.entry, hidden};
    }
    return {std::string(default_tenant), std::string(default_tenant), std::nullopt, hidden};
}

}  // namespace rdmaquota
