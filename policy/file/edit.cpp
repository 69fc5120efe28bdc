#include "policy/file/edit.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "policy/file/limit_place.hpp"
#include "policy/file/policy_file.hpp"
#include "policy/file/toml.hpp"

namespace rdmaquota {
namespace {

// A text that toml++'s positions (lines and code points from 1) can be found in.
class Document {
public:
    explicit Document(std::string text) : text_(std::move(text)) { crlf_ = text_.find("\r\n") != std::string::npos; }

    const std::string& text() const noexcept { return text_; }

    std::size_t offset(const toml::source_position& position) const {
        std::size_t at = text_.starts_with("\xef\xbb\xbf") ? 3 : 0;  // the byte order mark has no column
        for (auto line = position.line; line > 1; --line) at = end_of_line(at);
        for (auto column = position.column; column > 1 && at < text_.size(); --column) do
                ++at;
            while (at < text_.size() && (static_cast<unsigned char>(text_[at]) & 0xc0) == 0x80);
        return at;
    }

    std::size_t start_of_line(std::size_t at) const {
        const auto newline = at == 0 ? std::string::npos : text_.rfind('\n', at - 1);
        return newline == std::string::npos ? 0 : newline + 1;
    }

    std::string between(std::size_t begin, std::size_t end) const { return text_.substr(begin, end - begin); }

    void replace(const toml::source_region& region, const std::string& with) {
        const auto begin = offset(region.begin);
        text_.replace(begin, offset(region.end) - begin, with);
    }

    void insert(std::size_t at, const std::string& what) { text_.insert(at, what); }

    void erase(std::size_t begin, std::size_t end) { text_.erase(begin, end - begin); }

    // The whole line that `position` is in, with a comment behind it.
    void erase_line(const toml::source_position& position) {
        const auto at = offset(position);
        erase(start_of_line(at), end_of_line(at));
    }

    // The line of a header with nothing below it, and an empty line before it.
    void erase_header(const toml::source_position& position) {
        const auto at = offset(position), end = end_of_line(at);
        auto begin = start_of_line(at);
        if (text_[begin] != '[' || (end < text_.size() && text_[end] != '[' && text_[end] != '\n' && text_[end] != '\r')) return;
        const auto before = begin == 0 ? 0 : start_of_line(begin - 1);
        if (text_.find_first_not_of("\r\n", before) >= begin) begin = before;
        erase(begin, end);
    }

    // A whole line below the one that `position` is in.
    void insert_line_below(const toml::source_position& position, const std::string& line) {
        auto at = end_of_line(offset(position));
        if (at == text_.size() && !text_.ends_with('\n')) {
            text_ += newline();
            at = text_.size();
        }
        text_.insert(at, line + newline());
    }

    void append_line(const std::string& line) {
        if (!text_.empty() && !text_.ends_with('\n')) text_ += newline();
        text_ += line + newline();
    }

private:
    std::size_t end_of_line(std::size_t at) const {
        const auto newline = text_.find('\n', at);
        return newline == std::string::npos ? text_.size() : newline + 1;
    }
    const char* newline() const noexcept { return crlf_ ? "\r\n" : "\n"; }

    std::string text_;
    bool crlf_ = false;
};

// NAME = VALUE
struct Entry {
    std::string name;
    std::string value;
    std::string text() const { return fmt::format("{} = {}", name, value); }
};

std::string toml_value(const LimitChange& change) {
    const auto text = format_limit(change.key.resource, change.limit);
    const bool digits = std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    return digits ? text : '"' + text + '"';
}

// qp = 10, qp = { soft = 10 }
Entry toml_entry(const LimitChange& change) {
    const auto value = toml_value(change);
    return {std::string(info(change.key.resource).name),
            change.part == LimitPart::limit ? value : fmt::format("{{ {} = {} }}", name(change.part, change.key.resource), value)};
}

// A new entry goes after the last one of its table and looks like it: the same indentation, and
// the same leading keys where the author wrote process."*".qp = 1 without a header.
void add_entry(Document& document, const toml::table& table, const Entry& entry) {
    const auto last = std::max_element(table.begin(), table.end(), [](const auto& a, const auto& b) {
        return a.first.source().begin < b.first.source().begin;
    });
    if (table.is_inline() && table.empty()) return document.replace(table.source(), "{ " + entry.text() + " }");
    if (table.empty()) return document.insert_line_below(table.source().begin, entry.text());
    const auto end = last->second.source().end;
    if (table.is_inline()) return document.insert(document.offset(end), ", " + entry.text());
    const auto key = document.offset(last->first.source().begin);
    document.insert_line_below(end, document.between(document.start_of_line(key), key) + entry.text());
}

void add_table(Document& document, const LimitChange& change) {
    if (!document.text().empty()) document.append_line("");
    document.append_line(header_of(change.key));
    document.append_line(toml_entry(change).text());
}

// What is there is a limit alone, or a table of a limit, a guarantee and a soft limit.
void change_value(Document& document, const toml::node& node, const LimitChange& change) {
    const Entry part{std::string(name(change.part, change.key.resource)), toml_value(change)};
    if (const auto* parts = node.as_table()) {
        if (const auto* there = parts->get(part.name)) return document.replace(there->source(), part.value);
        return add_entry(document, *parts, part);
    }
    if (change.part == LimitPart::limit) return document.replace(node.source(), part.value);
    const auto begin = document.offset(node.source().begin), end = document.offset(node.source().end);
    document.replace(node.source(), fmt::format("{{ limit = {}, {} }}", document.between(begin, end), part.text()));
}

// The entry of an inline table, with the comma behind it, or the one before it.
void erase_inline_entry(Document& document, const toml::table& table, const toml::key& key, const toml::node& node) {
    auto begin = document.offset(key.source().begin), end = document.offset(node.source().end);
    const auto close = document.offset(table.source().end);
    const auto comma = document.between(end, close).find_first_not_of(" \t");
    if (comma != std::string::npos && document.text()[end + comma] == ',') {
        end += comma + 1;
        while (end < close && document.text()[end] == ' ') ++end;
    } else if (const auto before = document.text().find_last_not_of(" \t", begin - 1);
               before != std::string::npos && document.text()[before] == ',') {
        begin = before;
    }
    document.erase(begin, end);
}

void erase_entry(Document& document, const toml::table& table, std::string_view name) {
    const auto found = table.find(name);
    if (table.is_inline()) erase_inline_entry(document, table, found->first, found->second);
    else document.erase_line(found->first.source().begin);
}

// A limit, a guarantee or a soft limit that the file no longer has.
void remove_value(Document& document, const toml::table* table, const LimitChange& change) {
    const auto* cell = table == nullptr ? nullptr : table->get(info(change.key.resource).name);
    if (cell == nullptr) return;
    const auto* parts = cell->as_table();
    if (parts != nullptr && parts->size() > 1 && parts->contains(name(change.part, change.key.resource)))
        return erase_entry(document, *parts, name(change.part, change.key.resource));
    const bool whole = parts != nullptr ? parts->contains(name(change.part, change.key.resource)) : change.part == LimitPart::limit;
    if (whole) erase_entry(document, *table, info(change.key.resource).name);
}

std::string without_empty_table(const std::string& text, const std::string& file, const LimitKey& key) {
    const auto root = parse_toml(text, file);
    const auto* table = root ? find_table(*root, key) : nullptr;
    Document document(text);
    if (table != nullptr && table->empty() && !table->is_inline()) document.erase_header(table->source().begin);
    return document.text();
}

// What a resource has that its table does not name, by all = "25%".
std::uint64_t limit_by_all(const std::string& text, const std::string& file, const LimitChange& change) {
    const auto root = parse_toml(text, file);
    const auto* table = root && change.part == LimitPart::limit ? find_table(*root, change.key) : nullptr;
    const auto* all = table == nullptr ? nullptr : table->get_as<std::string>(all_resources);
    const auto limit = all == nullptr || !has_capacity(change.key.resource) ? Result<std::uint64_t>(Error{})
                                                                            : parse_limit(change.key.resource, all->get());
    return limit ? *limit : unset;
}

Result<std::string> edit_once(const std::string& text, const std::string& file, const LimitChange& change) {
    const auto root = parse_toml(text, file);
    if (!root) return Error{root.error()};
    Document document(text);
    const auto* table = find_table(root.value(), change.key);
    if (change.limit == unset)
        remove_value(document, table, change);
    else if (table == nullptr)
        add_table(document, change);
    else if (const auto* node = table->get(info(change.key.resource).name))
        change_value(document, *node, change);
    else
        add_entry(document, *table, toml_entry(change));
    return document.text();
}

ScopeLimits& scope_of(Policy& policy, const LimitKey& key, LimitPart part) {
    if (part == LimitPart::guarantee) return policy.tenant(key.tenant).guarantees;
    if (part == LimitPart::soft) return policy.tenant(key.tenant).softs;
    if (key.tenant == node_tenant) return policy.node;
    return key.tenant.empty() ? policy.process : policy.tenant(key.tenant).limits[index(key.scope)];
}

bool same_limits(ScopeLimits a, ScopeLimits b) {
    for (auto* rows : {&a, &b}) std::erase_if(*rows, [](const DeviceLimits& row) { return row.limits == unset_row(); });
    if (a.size() != b.size()) return false;
    const auto by_device = [](const DeviceLimits& x, const DeviceLimits& y) { return x.device < y.device; };
    std::sort(a.begin(), a.end(), by_device);
    std::sort(b.begin(), b.end(), by_device);
    return std::equal(a.begin(), a.end(), b.begin(), [](const DeviceLimits& x, const DeviceLimits& y) {
        return x.device == y.device && x.limits == y.limits;
    });
}

bool same_tenant(const TenantPolicy& a, const TenantPolicy& b) {
    return a.name == b.name && a.mode == b.mode && a.deny_errno == b.deny_errno && a.weight == b.weight &&
           a.grace_s == b.grace_s && a.max_delay_ms == b.max_delay_ms && a.cluster == b.cluster && a.matches == b.matches && a.transient == b.transient &&
           std::equal(a.limits.begin(), a.limits.end(), b.limits.begin(), same_limits) &&
           same_limits(a.guarantees, b.guarantees) && same_limits(a.softs, b.softs);
}

bool same_policy(const Policy& a, const Policy& b) {
    return a.mode == b.mode && a.on_unavailable == b.on_unavailable && a.deny_errno == b.deny_errno &&
           a.clamp_device_attr == b.clamp_device_attr && a.log_level == b.log_level && a.log_target == b.log_target &&
           a.log_file == b.log_file && a.grant_wait_ms == b.grant_wait_ms && a.dynamic == b.dynamic && a.sidecar == b.sidecar &&
           same_limits(a.process, b.process) && same_limits(a.node, b.node) &&
           std::equal(a.tenants.begin(), a.tenants.end(), b.tenants.begin(), b.tenants.end(), same_tenant);
}

// The cell as the file should have it, with its parts that do not change.
std::string whole_cell(Policy& policy, const LimitChange& change) {
    std::vector<std::string> parts;
    const bool has_parts = change.key.scope == Scope::tenant && change.key.tenant != node_tenant;
    for (const auto part : {LimitPart::limit, LimitPart::guarantee, LimitPart::soft}) {
        if (part != LimitPart::limit && !has_parts) continue;
        const auto* row = find_row(scope_of(policy, change.key, part), change.key.device);
        const auto value = row == nullptr ? unset : (*row)[index(change.key.resource)];
        if (value != unset) parts.push_back(fmt::format("{} = {}", name(part, change.key.resource), toml_value({change.key, value, part})));
    }
    if (parts.size() == 1) return toml_entry(change).text();
    return fmt::format("{} = {{ {} }}", info(change.key.resource).name, fmt::join(parts, ", "));
}

Error by_hand(const std::string& file, Policy& expected, const LimitChange& change) {
    if (change.limit == unset)
        return {fmt::format("{}: cannot remove the {} from this file's layout; remove it by hand: {} {}", file,
                            name(change.part, change.key.resource), header_of(change.key), info(change.key.resource).name)};
    return {fmt::format("{}: cannot place the limit in this file's layout; add it by hand: {} {}", file,
                        header_of(change.key), whole_cell(expected, change))};
}

// A tenant that the file does not name has no limits to remove.
bool is_in_file(Policy& policy, const LimitChange& change) {
    const auto& tenant = change.key.tenant;
    if (!tenant.empty() && tenant != node_tenant && policy.find(tenant) == nullptr) return false;
    const auto* row = find_row(scope_of(policy, change.key, change.part), change.key.device);
    return row != nullptr && (*row)[index(change.key.resource)] != unset;
}

Result<void> check_possible(const std::string& file, const LimitChange& change) {
    if (change.key.tenant.empty() && change.key.scope == Scope::tenant)
        return Error{fmt::format("{}: the limit of {} names no tenant", file, info(change.key.resource).name)};
    const bool whole = change.key.scope == Scope::tenant && change.key.tenant != node_tenant;
    if (change.part != LimitPart::limit && !whole)
        return Error{fmt::format("{}: a {} is possible for a tenant as a whole only", file, name(change.part, change.key.resource))};
    return {};
}

// Not where the table alone makes a tenant. An override that says nothing goes.
void drop_empty_table(std::string& edited, const std::string& file, const LimitKey& key, Policy& expected) {
    auto shorter = without_empty_table(edited, file, key);
    auto policy = parse_policy(shorter, file);
    if (!policy) return;
    const bool of_template = std::any_of(policy->tenants.begin(), policy->tenants.end(), [&](const TenantPolicy& tenant) {
        return is_template(tenant.name) && is_instance(key.tenant, tenant.name);
    });
    const bool was_override = of_template && policy->find(key.tenant) == nullptr;
    if (!was_override && !same_policy(*policy, expected)) return;
    edited = std::move(shorter);
    expected = std::move(*policy);
}

}  // namespace

Result<std::string> edit_policy(const std::string& text, const std::string& file,
                                const std::vector<LimitChange>& changes) {
    auto expected = parse_policy(text, file);
    if (!expected) return Error{expected.error()};
    std::string edited = text;
    for (const auto& change : changes) {
        if (const auto possible = check_possible(file, change); !possible) return Error{possible.error()};
        if (change.limit == unset && !is_in_file(*expected, change)) continue;
        auto& cell = row_for(scope_of(*expected, change.key, change.part), change.key.device)[index(change.key.resource)];
        const auto by_all = change.limit == unset ? limit_by_all(edited, file, change) : unset;
        cell = change.limit == unset ? by_all : change.limit;
        const auto next = edit_once(edited, file, change);
        if (!next || !parse_toml(next.value(), file)) return by_hand(file, *expected, change);
        if (by_all != unset && *next == edited)
            return Error{fmt::format("{}: {} limits {} by all = \"{}\" only; set another limit, or change that line by hand", file,
                                     header_of(change.key), info(change.key.resource).name, format_limit(change.key.resource, by_all))};
        edited = next.value();
        // Our own output is checked too, so that a broken or altered policy is never returned.
        const auto again = parse_policy(edited, file);
        if (!again) return Error{fmt::format("{}: unchanged, since the policy would be wrong: {}", file, again.error())};
        if (!same_policy(again.value(), expected.value())) return by_hand(file, *expected, change);
        if (change.limit == unset) drop_empty_table(edited, file, change.key, *expected);
    }
    return edited;
}

}  // namespace rdmaquota
