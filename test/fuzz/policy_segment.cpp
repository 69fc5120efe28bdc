// A compiled policy is overwritten or has another length: it is refused with one line, or every reader works.
#include <algorithm>
#include <cerrno>

#include "fuzz.hpp"
#include "patch.hpp"
#include "shm/policy/limits_segment.hpp"
#include "shm/policy/limits_writer.hpp"
#include "test/unit/temporary_directory.hpp"

using namespace rdmaquota;
using namespace rdmaquota::fuzz;

namespace {

struct Fixture {
    TemporaryDirectory directory;
    std::string path = directory / "policy";
    PristineFile file = make();

private:
    PristineFile make() const {
        TenantLimits policy;
        row_for(policy.limits[index(Scope::process)], "mlx5_0")[index(Resource::qp)] = 3;
        row_for(policy.limits[index(Scope::tenant)], any_device)[index(Resource::mr_bytes)] = 1 << 20;
        row_for(policy.limits[index(Scope::tenant)], total_device)[index(Resource::qp)] = 10;
        policy.dynamic.resize(2);
        policy.sidecar.backstop = "/slurm";
        expect(static_cast<bool>(LimitsWriter::publish(path, policy)), "a policy can be published");
        return PristineFile(path);
    }
};

void patch(int fd, Input& input) {
    const auto at = input.take<std::uint16_t>() % sizeof(PolicyImage);
    const auto bytes = input.text(input.take<std::uint8_t>());
    PristineFile::write_at(fd, static_cast<off_t>(at), bytes.data(), std::min(bytes.size(), sizeof(PolicyImage) - at));
}

void read_all(const LimitsSegment& segment) {
    expect(segment.mode() <= Mode::off, "a mode that is known");
    expect(segment.log_level() <= LogLevel::debug, "a level that is known");
    expect(segment.log_target() <= LogTarget::file, "a target that is known");
    expect(!deny_errno_name(segment.deny_errno()).starts_with('?'), "an error that is known");
    expect(segment.log_file().size() <= 256, "the log file's name ends");
    for (const auto scope : {Scope::process, Scope::tenant})
        for (const auto device : {"mlx5_0", "*", "total", ""})
            for (const auto& resource : resource_table) segment.limit(scope, device, resource.id);
    const auto policy = segment.decompile();
    expect(policy.process.size() <= policy_rows && policy.tenant.size() <= policy_rows, "no more rows than there are");
    expect(policy.dynamic.size() <= most_dynamic_rules, "no more rules than there are");
    expect(policy.sidecar.backstop.size() <= 255, "the backstop's path ends");
    for (const auto& rule : policy.dynamic)
        expect(!name(rule.of).empty() && !name(rule.scope).empty() && index(rule.watch) < resource_count &&
                   index(rule.limit) < resource_count && valid_device(rule.device),
               "a rule that is known");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const Fixture fixture;
    Input input(data, size);
    const int fd = fixture.file.restore();
    const auto form = input.take<std::uint8_t>();
    const auto length = input.take<std::uint16_t>();
    while (!input.empty()) patch(fd, input);
    if (form % 8 == 1) expect(ftruncate(fd, length) == 0, "the file can be cut");
    close(fd);

    const auto segment = LimitsSegment::open(fixture.path);
    if (!segment) {
        expect_one_line(segment.error());
    } else {
        read_all(segment.value());
        if (form % 2 == 0) {
            auto writer = LimitsWriter::open(fixture.path);
            expect(static_cast<bool>(writer), "what can be read can be changed");
            const auto set = writer->set(Scope::tenant, "rxe0", Resource::qp, 2);
            if (!set) expect_one_line(set.error());
            read_all(segment.value());
        }
        if (form % 4 == 2) {
            const auto policy = segment->decompile();
            if (policy.log_file.size() < sizeof segment->image().log_file)
                expect(static_cast<bool>(LimitsWriter::publish(fixture.path, policy)), "it can be published anew");
        }
    }
    return 0;
}
