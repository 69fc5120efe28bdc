#include "policy/file/sidecar_tables.hpp"

#include <algorithm>
#include <array>

namespace rdmaquota {
namespace {

constexpr std::uint32_t largest_per_cent = 100'000;

// One [[dynamic]] table. What an amount means depends on the resource, which may be named after it.
class RuleReader {
public:
    RuleReader(TableReader& reader, const toml::table& table) : reader_(reader), table_(table) {}

    DynamicRule read() {
        for (const auto& [key, node] : table_) entry(key, node);
        if (!table_.contains("watch"))
            reader_.fail(table_, "the rule does not say what it watches; write watch = \"mr_bytes\"");
        if (!limit_) limit_ = watch_;
        if (watch_ && limit_) amounts();
        check();
        return rule_;
    }

private:
    void entry(const toml::key& key, const toml::node& node) {
        static constexpr std::array<std::string_view, 10> known{"tenant", "device", "watch", "of",     "above",
                                                                "below",  "limit",  "scope", "factor", "floor"};
        if (key == "tenant") return tenant(node);
        if (key == "device") return device(node);
        if (key == "watch") return reader_.resource(key, node, watch_);
        if (key == "limit") return reader_.resource(key, node, limit_);
        if (key == "above") return reader_.whole(key, node, 1, largest_per_cent, rule_.above);
        if (key == "below") return reader_.whole(key, node, 0, largest_per_cent, rule_.below);
        if (key == "factor") return reader_.whole(key, node, 0, largest_per_cent, rule_.factor);
        if (key == "scope") return reader_.word(key, node, parse_scope, rule_.scope);
        if (key != "of" && key != "floor") reader_.unknown("key in [[dynamic]]", key, known);
    }

    void tenant(const toml::node& node) {
        const auto* text = node.as_string();
        if (text == nullptr || (text->get() != "*" && !check_tenant_name(text->get())))
            return reader_.fail(node,
                                "the tenant of a rule is a name such as \"physics/atlas\", or \"*\" for each tenant");
        rule_.tenant = text->get();
    }

    void device(const toml::node& node) {
        const auto* text = node.as_string();
        if (text == nullptr || !valid_device(text->get()) || stands_alone(text->get()) || is_selector(text->get()))
            return reader_.fail(node, "the device of a rule is a name such as \"mlx5_0\", or \"*\" for each device");
        rule_.device = text->get();
    }

    void amounts() {
        rule_.watch = *watch_;
        rule_.limit = *limit_;
        if (const auto* node = table_.get("of")) capacity(*node);
        if (const auto* node = table_.get("floor"))
            amount(rule_.limit, *node, rule_.floor);
        else
            reader_.fail(table_, "the rule has no floor; write floor = N, below which it takes no limit");
    }

    void amount(Resource resource, const toml::node& node, std::uint64_t& into) {
        reader_.amount(resource, node, into);
        if (is_percentage(into)) reader_.fail(node, "a rule takes amounts; only limits, guarantees and soft limits can be percentages");
    }

    void capacity(const toml::node& node) {
        const auto* text = node.as_string();
        for (const auto of : {CapacityOf::limit, CapacityOf::node, CapacityOf::device})
            if (text != nullptr && text->get() == name(of)) {
                rule_.of = of;
                if (of == CapacityOf::node && rule_.watch != Resource::mr_bytes)
                    reader_.fail(node, "the node's memory is a capacity of mr_bytes only");
                return;
            }
        rule_.of = CapacityOf::amount;
        amount(rule_.watch, node, rule_.capacity);
        if (rule_.capacity == 0 || rule_.capacity == unlimited)
            reader_.fail(node, "of must be \"limit\", \"node\", \"device\", or an amount greater than 0");
    }

    void check() {
        if (rule_.below >= rule_.above)
            reader_.fail(table_, fmt::format("below ({}) must be less than above ({}), or the limit would never rest",
                                             rule_.below, rule_.above));
        if (rule_.factor == 100) reader_.fail(table_, "a factor of 100 % changes nothing; less tightens, more relaxes");
    }

    TableReader& reader_;
    const toml::table& table_;
    DynamicRule rule_;
    std::optional<Resource> watch_;
    std::optional<Resource> limit_;
};

}  // namespace

void read_dynamic(TableReader& reader, const toml::node& node, std::vector<DynamicRule>& into) {
    const auto* list = node.as_array();
    if (list == nullptr) return reader.fail(node, "dynamic rules are written below [[dynamic]], with two brackets");
    for (const auto& entry : *list) {
        const auto* table = entry.as_table();
        if (table == nullptr) return reader.fail(entry, "a dynamic rule is a table; write it below [[dynamic]]");
        if (into.size() == most_dynamic_rules)
            return reader.fail(entry, fmt::format("more than {} dynamic rules; remove some", most_dynamic_rules));
        into.push_back(RuleReader(reader, *table).read());
    }
}

namespace {

// One of these words.
template <class Word, std::size_t N>
void read_word(TableReader& reader, const toml::node& node, const Word (&words)[N], const char* rule, Word& into) {
    const auto* text = node.as_string();
    for (const auto word : words)
        if (text != nullptr && text->get() == name(word)) {
            into = word;
            return;
        }
    reader.fail(node, rule);
}

constexpr GuardMode guard_modes[] = {GuardMode::off, GuardMode::watch, GuardMode::deny};
constexpr WebAccess web_accesses[] = {WebAccess::token, WebAccess::all};

void read_path(TableReader& reader, const toml::key& key, const toml::node& node, std::string& into) {
    const auto* text = node.as_string();
    const auto control = [](unsigned char c) { return c < ' '; };
    if (text == nullptr || !text->get().starts_with('/') || text->get().size() > longest_path_bytes ||
        std::any_of(text->get().begin(), text->get().end(), control))
        return reader.fail(node, fmt::format("{} is the absolute path of a file, of at most {} bytes", key.str(), longest_path_bytes));
    into = text->get();
}

void read_address(TableReader& reader, const toml::node& node, std::string& into) {
    const auto* text = node.as_string();
    if (text == nullptr || address_kind(text->get()) == AddressKind::none)
        return reader.fail(node, "metrics_address is an IPv4 or IPv6 address of this node, or \"0.0.0.0\" or \"::\" for all of them");
    into = text->get();
}

void read_labels(TableReader& reader, const toml::node& node, MetricsAccess& into) {
    const auto* list = node.as_array();
    const auto fail = [&](const toml::node& at) { reader.fail(at, "metrics_labels is a list of \"pod\" and \"job\""); };
    if (list == nullptr) return fail(node);
    for (const auto& entry : *list) {
        const auto* word = entry.as_string();
        if (word != nullptr && word->get() == "pod")
            into.pods = true;
        else if (word != nullptr && word->get() == "job")
            into.jobs = true;
        else
            return fail(entry);
    }
}

// What is served to other machines is encrypted, and served to whom the administrator chose.
void check_metrics(TableReader& reader, const toml::node& node, const MetricsAccess& metrics) {
    if (metrics.certificate.empty() != metrics.key.empty())
        return reader.fail(node, "metrics_certificate and metrics_key belong together; name both");
    if (metrics.asks_for_proof() && !metrics.has_tls())
        return reader.fail(node, "metrics_token and metrics_client_ca need TLS; name metrics_certificate and metrics_key, too");
    if (address_kind(metrics.address) != AddressKind::loopback && !metrics.asks_for_proof())
        reader.fail(node, fmt::format("metrics_address = \"{}\" is reached from other machines, which needs metrics_certificate and "
                                      "metrics_key, and metrics_token or metrics_client_ca", metrics.address));
}

bool read_metrics(TableReader& reader, const toml::key& key, const toml::node& node, Sidecar& into) {
    if (key == "metrics_port") return reader.whole(key, node, 0, 65535, into.metrics_port), true;
    if (key == "metrics_address") return read_address(reader, node, into.metrics.address), true;
    if (key == "metrics_certificate") return read_path(reader, key, node, into.metrics.certificate), true;
    if (key == "metrics_key") return read_path(reader, key, node, into.metrics.key), true;
    if (key == "metrics_token") return read_path(reader, key, node, into.metrics.token), true;
    if (key == "metrics_client_ca") return read_path(reader, key, node, into.metrics.client_ca), true;
    if (key == "metrics_labels") return read_labels(reader, node, into.metrics), true;
    return false;
}

void check_ports(TableReader& reader, const toml::node& node, const Sidecar& sidecar) {
    if (sidecar.web_port != 0 && sidecar.web_port == sidecar.metrics_port)
        reader.fail(node, "metrics_port and web_port must differ");
}

}  // namespace

void read_sidecar(TableReader& reader, const toml::key& key, const toml::node& node, Sidecar& into) {
    static constexpr std::array<std::string_view, 10> known{"guard",         "metrics_address", "metrics_certificate", "metrics_client_ca",
                                                            "metrics_key",   "metrics_labels",  "metrics_port",        "metrics_token",
                                                            "web",           "web_port"};
    const auto* table = reader.as_table(key, node);
    if (table == nullptr) return;
    for (const auto& [entry, value] : *table)
        if (read_metrics(reader, entry, value, into))
            continue;
        else if (entry == "web_port")
            reader.whole(entry, value, 0, 65535, into.web_port);
        else if (entry == "guard")
            read_word(reader, value, guard_modes, R"(guard must be "off", "watch" or "deny")", into.guard);
        else if (entry == "web")
            read_word(reader, value, web_accesses, R"(web must be "token" or "all")", into.web);
        else
            reader.unknown("key in [sidecar]", entry, known);
    check_ports(reader, node, into);
    check_metrics(reader, node, into.metrics);
}

}  // namespace rdmaquota
