// The node's compiled policy is overwritten or has another length: it is refused with one line, or every reader works.
#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

#include "fuzz.hpp"
#include "patch.hpp"
#include "policy/subject_text.hpp"
#include "shm/policy/node_image.hpp"
#include "test/unit/temporary_directory.hpp"

using namespace rdmaquota;
using namespace rdmaquota::fuzz;

namespace {

const NameLookup names{
    [](const std::string& name) { return name == "alice" ? std::optional(uid_t{1000}) : std::nullopt; },
    [](const std::string& name) { return name == "hpc" ? std::optional(gid_t{2000}) : std::nullopt; }};

Result<void> publish(const std::string& path, const Policy& policy) {
    const auto lock = PolicyLock::take(path);
    expect(static_cast<bool>(lock), "the policy can be locked");
    return publish_node_policy(*lock, path, policy, names);
}

struct Fixture {
    TemporaryDirectory directory;
    std::string path = directory / "policy";
    PristineFile file = make();

private:
    PristineFile make() const {
        Policy policy;
        policy.log_file = "/var/log/rdmaquota";
        policy.dynamic.resize(1);
        policy.tenant("physics/atlas").matches = {{"alice", "hpc", "/slurm/**/job_*", "*.scope", {"alice", "@none"}}};
        policy.tenant("slurm/{user}/{job}").matches = {{"", "", "/slurm/*/job_{job}", "", {"*"}}};
        policy.tenant("user/{user}").matches = {{"", "hpc", "", "", {}}, {"nobody", "", "", "", {}}};
        policy.tenant("job-7").transient = true;
        policy.tenant("job-7").matches = {{"", "", "/slurm/a/job_7/step_0", "", {"alice"}}};
        expect(static_cast<bool>(publish(path, policy)), "a policy can be published");
        return PristineFile(path);
    }
};

// Mostly in the records; the sidecar's part is large and mostly empty.
void patch(int fd, off_t size, Input& input) {
    const auto at = static_cast<off_t>(input.take<std::uint16_t>()) % size;
    const auto bytes = input.text(input.take<std::uint8_t>());
    const auto room = static_cast<std::size_t>(size - at);
    PristineFile::write_at(fd, at, bytes.data(), std::min(bytes.size(), room));
}

void check_verdict(const NodePolicy::Verdict& verdict) {
    expect(!verdict.tenant.empty() && verdict.tenant.size() < tenant_name_bytes, "a key of a tenant", verdict.tenant);
    expect(verdict.tenant.front() != '/' && verdict.tenant.front() != '.', "a key that is a name", verdict.tenant);
    expect(verdict.tenant.find("/.") == verdict.tenant.npos, "a key that leads nowhere else", verdict.tenant);
}

void read_all(const NodePolicy& policy, std::string_view cgroup) {
    const std::array<gid_t, 2> groups{5, 2000};
    for (const auto path : {std::string_view("/slurm/a/job_7/step_0"), std::string_view("/"), cgroup}) {
        check_verdict(policy.find({uid_t{1000}, gid_t{100}, groups, path}));
        check_verdict(policy.find({std::nullopt, std::nullopt, {}, path}));
    }
    policy.asks_for_ids();
    policy.asks_for_cgroup();
    policy.unknown_names();
    const auto settings = policy.settings();
    expect(settings.mode <= Mode::off, "a mode that is known");
    expect(settings.log_level <= LogLevel::debug, "a level that is known");
    expect(settings.log_target <= LogTarget::file, "a target that is known");
    expect(!deny_errno_name(settings.deny_errno).starts_with('?'), "an error that is known");
}

void check_decompiled(const Policy& policy, const std::string& path) {
    expect(policy.find(default_tenant) != nullptr, "there is a default tenant");
    for (const auto& tenant : policy.tenants) {
        expect(check_tenant_name(tenant.name) || check_template_name(tenant.name), "a tenant's name", tenant.name);
        expect(!tenant.weight || (tenant.weight >= 1 && tenant.weight <= most_weight), "a weight that is possible");
    }
    for (const auto& rule : policy.dynamic)
        expect(valid_device(rule.device) && index(rule.limit) < resource_count, "a rule that is known");
    if (const auto published = publish(path, policy); !published) {  // a damaged pattern
        expect_one_line(published.error());
        return;
    }
    const auto again = NodePolicy::read(path);
    expect(static_cast<bool>(again), "what was published can be read");
    expect(again->decompile().tenants.size() == policy.tenants.size(), "all tenants come back");
}

void read_texts(std::string_view text) {
    const auto path = cgroup_path(text);
    expect(path.empty() || path.front() == '/', "a cgroup's path", path);
    expect(path.find('\n') == path.npos, "one line", path);
    id_outside(text, 1000);
    expect(process_ids(text).groups.size() <= text.size(), "no more groups than there are");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const Fixture fixture;
    Input input(data, size);
    const auto form = input.take<std::uint8_t>();
    if (form % 8 == 7) {
        read_texts(input.text(size));
        return 0;
    }
    const auto length = input.take<std::uint16_t>();
    const auto cgroup = "/" + input.line();
    const int fd = fixture.file.restore();
    while (!input.empty()) patch(fd, fixture.file.size(), input);
    if (form % 8 == 1) expect(ftruncate(fd, length) == 0, "the file can be cut");
    close(fd);

    const auto policy = NodePolicy::read(fixture.path);
    if (!policy) {
        expect_one_line(policy.error());
        return 0;
    }
    read_all(policy.value(), cgroup);
    if (form % 2 == 0) check_decompiled(policy->decompile(), fixture.path);
    return 0;
}
