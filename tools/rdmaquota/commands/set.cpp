// rdmaquota set and unset: change limits of the running policy and, with --persist, of the policy file.
#include <algorithm>
#include <cstdio>
#include <memory>

#include <fmt/core.h>

#include "policy/file/tenant_tables.hpp"
#include "shm/paths.hpp"
#include "tools/common/limits/named_devices.hpp"
#include "tools/common/limits/node_checks.hpp"
#include "tools/common/limits/policy_change.hpp"
#include "tools/common/shares/divide.hpp"
#include "tools/common/tenants/template_tenants.hpp"
#include "tools/common/tenants/tenant_files.hpp"
#include "tools/common/tenants/tenants.hpp"
#include "tools/common/text/terminal.hpp"
#include "tools/rdmaquota/command.hpp"

namespace rdmaquota {
namespace {

struct Options {
    std::vector<std::string> words;  // [TENANT] DEVICE RES=N...; for unset, RES...
    bool process = false;
    bool soft = false;
    bool burst = false;
    bool guarantee = false;
    bool persist = false;
    std::string file;
};

using Words = std::vector<std::string>;

// What all limits of one command have in common: the first words. A tenant that is not named is `default`, or, for limits of
// processes, every tenant.
Result<LimitKey> read_key(const Words& names, const Options& options) {
    if (options.process + options.soft + options.burst + options.guarantee > 1)
        return Error{"--process, --soft, --burst and --guarantee exclude each other: soft limits, bursts and guarantees are for a tenant "
                     "as a whole"};
    if (names.empty()) return Error{"no device is given; write its name before the limits, or '*' for each, or total"};
    LimitKey key;
    key.scope = options.process ? Scope::process : Scope::tenant;
    if (names.size() == 2) key.tenant = names[0];
    else if (!options.process) key.tenant = default_tenant;
    key.device = names.back();
    if (!valid_device(key.device)) return Error{fmt::format("'{}' is no device name; behind a tenant's name, write a device, '*' or total", key.device)};
    return key;
}

LimitPart part_of(const Options& options) {
    return options.soft || options.burst ? LimitPart::soft : options.guarantee ? LimitPart::guarantee : LimitPart::limit;
}

// A rate has a burst, and what is counted a soft limit.
Result<void> check_fits(const Options& options, Resource resource) {
    if (options.soft && is_rate(resource)) return Error{fmt::format("{} is a rate and has no soft limit; set its --burst", info(resource).name)};
    if (options.burst && !is_rate(resource)) return Error{fmt::format("{} is no rate and has no burst", info(resource).name)};
    return {};
}

bool is_setting(const std::string& word) { return word.find('=') != std::string::npos; }

Result<std::vector<LimitChange>> read_changes(const Options& options) {
    const auto settings = std::find_if(options.words.begin(), options.words.end(), is_setting);
    if (settings == options.words.end()) return Error{"no limit is given; write RESOURCE=N, for example rxe0 qp=10"};
    const Words names(options.words.begin(), settings);
    if (names.size() > 2) return Error{fmt::format("'{}' is no limit: write RESOURCE=N, for example qp=10", names[2])};
    auto key = read_key(names, options);
    if (!key) return Error{key.error()};
    std::vector<LimitChange> changes;
    auto limits = unset_row();
    for (auto word = settings; word != options.words.end(); ++word)
        if (auto added = add_settings(limits, key->device, *word); !added) return Error{added.error()};
    for (const auto& row : limit_table)
        if (const auto limit = limits[index(row.id)]; limit != unset) {
            if (auto fits = check_fits(options, row.id); !fits) return Error{fits.error()};
            key->resource = row.id;
            changes.push_back({*key, limit, part_of(options)});
        }
    return changes;
}

Result<std::vector<LimitKey>> read_keys(const Options& options) {
    const auto is_resource = [](const std::string& word) { return word == all_resources || find_limit(word); };
    const auto resource = std::find_if(options.words.begin(), options.words.end(), is_resource);
    if (resource == options.words.end())
        return Error{"no resource is given; write the limit's resource without a value, for example rxe0 qp"};
    const Words names(options.words.begin(), resource);
    if (names.size() > 2)
        return Error{fmt::format("'{}' is no resource; choose of {}", names[2], limit_names())};
    auto key = read_key(names, options);
    if (!key) return Error{key.error()};
    std::vector<LimitKey> keys;
    for (auto word = resource; word != options.words.end(); ++word) {
        if (!is_resource(*word)) return Error{fmt::format("'{}' is no resource; choose of {}", *word, limit_names())};
        const auto found = find_limit(*word);
        if (found)
            if (auto fits = check_fits(options, *found); !fits) return Error{fits.error()};
        for (const auto one : found ? std::vector{*found} : resources_with_capacity(key->device)) {
            key->resource = one;
            keys.push_back(*key);
        }
    }
    return keys;
}

// The file that `--persist` changes; empty without it.
Result<std::string> file_to_change(const Options& options, const Session& session) {
    if (!options.persist) return std::string();
    if (!options.file.empty()) return options.file;
    if (session.directory == system_directory) return default_policy_file();
    return Error{fmt::format("{} does not come from {}; name its policy file with --file", session.directory,
                             default_policy_file())};
}

// An unknown name is most often misspelt, but may be that of a device to come.
void warn_of_unknown_device(const std::string& device, const Session& session) {
    if (device == any_device || device == total_device) return;
    if (const auto missing = missing_port(device); !missing.empty())
        return warn(fmt::format("warning: {}; the limit holds for nothing", missing));
    const auto known = known_devices(session.directory);
    if (std::find(known.begin(), known.end(), without_port(device)) != known.end()) return;
    std::string names;
    for (const auto& name : known) names += (names.empty() ? "" : ", ") + name;
    warn(fmt::format("warning: no device '{}' is known here{}{}; the limit waits for it", device,
                     names.empty() ? "" : ", only ", names));
}

std::string held_words(const LimitDone& done) {
    const bool known = is_percentage(done.after) && done.in_force != unlimited;
    if (known && done.reason == Reason::configured) return fmt::format("; {} in force", format_amount(done.key.resource, done.in_force));
    if (done.reason == Reason::configured || done.in_force == done.after) return {};
    const auto why = done.reason == Reason::rule ? "a dynamic rule holds it"
                     : done.reason == Reason::grant ? "its share of what the tenants above it may use"
                                                    : "see rdmaquota show";
    return fmt::format("; {} in force: {}", format_amount(done.key.resource, done.in_force), why);
}

void print_changes(const std::vector<LimitDone>& done) {
    const auto terminal = standard_output();
    for (const auto& change : done) {
        const auto resource = change.key.resource;
        const auto part = change.part == LimitPart::limit ? "" : fmt::format(" {}", name(change.part, change.key.resource));
        const auto line = fmt::format("{} {}{}: {} -> {} ({}){}", change.key.device, info(resource).name, part,
                                      format_amount(resource, change.before), format_amount(resource, change.after),
                                      holder_of(change.key), held_words(change));
        fmt::print("{}\n", wrapped(terminal, line, 2));
    }
}

void warn_of_exempt(const PolicyChange& change) {
    for (const auto& tenant : change.exempt())
        warn(fmt::format("warning: tenant {} has a limit of its own and keeps it", tenant));
}

// What `check` would say of the limits in force.
std::vector<std::string> warnings_in_force(const std::string& directory) {
    auto policy = running_policy(directory);
    if (!policy) return {};
    for (auto& tenant : policy->tenants) fill_limits(directory, tenant);
    for (const auto& place : tenant_places(directory)) {
        TenantPolicy instance;
        instance.name = place.key;
        if (place.key == node_tenant || is_template(place.key) || policy->find(place.key) != nullptr) continue;
        fill_limits(directory, instance);
        instance.name = shown_name(place.key);
        if (!instance.guarantees.empty()) policy->tenants.push_back(std::move(instance));
    }
    policy->warnings.clear();
    warn_of_tree(*policy, {});
    return policy->warnings;
}

void warn_of_new(const std::vector<std::string>& before, const std::vector<std::string>& now) {
    for (const auto& warning : now)
        if (std::find(before.begin(), before.end(), warning) == before.end()) warn("warning: " + warning);
}

int make_change(PolicyChange::Kind kind, std::vector<LimitChange> changes, const Options& options,
                const Session& session) {
    const auto file = file_to_change(options, session);
    if (!file) return failed(file.error());
    const auto device = changes.front().key.device;
    const auto before = warnings_in_force(session.directory);
    std::vector<LimitDone> done;
    {
        auto change = PolicyChange::begin(session.directory, kind, std::move(changes),
                                          file->empty() ? PolicyLock::default_patience : PolicyChange::patience_for_file);
        if (!change) return failed(change.error());
        if (!file->empty())
            if (const auto prepared = change->prepare_file(*file); !prepared) return failed(prepared.error());
        auto committed = change->commit();
        if (!committed) return failed(committed.error());
        done = std::move(*committed);
        if (kind == PolicyChange::Kind::set) warn_of_unknown_device(device, session);
        warn_of_exempt(*change);
        warn_of_new(before, warnings_in_force(session.directory));
    }
    if (const auto divided = divide_shares(session.directory); !divided)
        return failed("the limits are changed, but shares were not moved: " + divided.error());
    read_again(session.directory, done);
    print_changes(done);
    if (!file->empty()) fmt::print("saved in {}\n", *file);
    return status_done;
}

int set(const Options& options, const Session& session) {
    const auto changes = read_changes(options);
    if (!changes) return wrong_usage(changes.error());
    return make_change(PolicyChange::Kind::set, *changes, options, session);
}

int take_back(const Options& options, const Session& session) {
    const auto keys = read_keys(options);
    if (!keys) return wrong_usage(keys.error());
    std::vector<LimitChange> changes;
    for (const auto& key : *keys) changes.push_back({key, unset, part_of(options)});
    return make_change(PolicyChange::Kind::unset, std::move(changes), options, session);
}

}  // namespace

void add_set(CommandLine& line, const Session& session) {
    const auto options = std::make_shared<Options>();
    auto command = line.command("set", "Change limits; running programs feel it at once");
    command.words("[TENANT] DEVICE RESOURCE=N", options->words,
                  "What to limit: a device, a port of it (mlx5_0/1), '*' for each device or total for their sum; N as "
                  "in 10, 10k, 4GiB, max");
    command.flag("--process", options->process, "Limit each process instead of the tenant as a whole");
    command.flag("--soft", options->soft, "Set a soft limit, which may be exceeded for the grace period");
    command.flag("--burst", options->burst, "Set how much of a rate may come at once");
    command.flag("--guarantee", options->guarantee, "Set what is reserved for the tenant");
    command.flag("--persist", options->persist, "Change the policy file too, so that the limit outlives a reload");
    command.option("--file", "FILE", options->file, "Policy file for --persist instead of " + default_policy_file());
    command.action([options, &session] { return set(*options, session); });
}

void add_unset(CommandLine& line, const Session& session) {
    const auto options = std::make_shared<Options>();
    auto command = line.command("unset", "Take back what `set` changed: what the policy file says holds again; with --persist, remove the limit from the file");
    command.words("[TENANT] DEVICE RESOURCE", options->words, "Whose limit, on which device, of which resources");
    command.flag("--soft", options->soft, "Its soft limit");
    command.flag("--burst", options->burst, "The burst of its rate");
    command.flag("--guarantee", options->guarantee, "Its guarantee");
    command.flag("--process", options->process, "The limit of each process instead of the tenant's as a whole");
    command.flag("--persist", options->persist, "Remove the limit from the policy file, too");
    command.option("--file", "FILE", options->file, "Policy file for --persist instead of " + default_policy_file());
    command.action([options, &session] { return take_back(*options, session); });
}

}  // namespace rdmaquota
