// A file of limits is overwritten or has another length: it is refused with one line, or every reader works.
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
    std::string path = directory / "limits";
    PristineFile file = make();

private:
    PristineFile make() const {
        TenantLimits limits;
        row_for(limits.limits[index(Scope::process)], "mlx5_0")[index(Resource::qp)] = 3;
        row_for(limits.limits[index(Scope::tenant)], any_device)[index(Resource::mr_bytes)] = 1 << 20;
        row_for(limits.limits[index(Scope::tenant)], total_device)[index(Resource::qp)] = 10;
        expect(static_cast<bool>(LimitsWriter::publish(path, limits)), "limits can be published");
        auto writer = LimitsWriter::open(path);
        expect(writer && writer->hold(Scope::tenant, any_device, Resource::mr_bytes, 1, Reason::rule, "why"),
               "a limit can be held");
        return PristineFile(path);
    }
};

constexpr std::size_t file_bytes = limits_bytes(3, LimitsSegment::Parts::all);

void patch(int fd, Input& input) {
    const auto at = input.take<std::uint16_t>() % file_bytes;
    const auto bytes = input.text(input.take<std::uint8_t>());
    PristineFile::write_at(fd, static_cast<off_t>(at), bytes.data(), std::min(bytes.size(), file_bytes - at));
}

void read_all(const LimitsSegment& segment) {
    expect(segment.mode() <= Mode::off, "a mode that is known");
    expect(segment.log_level() <= LogLevel::debug, "a level that is known");
    expect(segment.log_target() <= LogTarget::file, "a target that is known");
    expect(!deny_errno_name(segment.deny_errno()).starts_with('?'), "an error that is known");
    expect(segment.log_file().size() <= 256, "the log file's name ends");
    expect(segment.tenant().size() <= tenant_name_bytes, "the tenant's name ends");
    for (const auto scope : {Scope::process, Scope::tenant})
        for (const auto device : {"mlx5_0", "*", "total", ""})
            for (const auto& resource : resource_table) {
                segment.limit(scope, device, resource.id);
                segment.configured(scope, device, resource.id);
                expect(!name(segment.reason(scope, device, resource.id)).empty(), "a reason that is known");
            }
}

void read_origins(const LimitsSegment& segment) {
    for (const auto& held : held_limits(segment)) expect(held.why.size() <= 64, "the reason's words end");
    const auto limits = configured_limits(segment);
    for (const auto& scope : limits) expect(scope.size() <= most_limit_rows * 2, "no more rows than there are");
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

    const auto segment = LimitsSegment::open(fixture.path, LimitsSegment::Parts::all);
    if (!segment) {
        expect_one_line(segment.error());
        return 0;
    }
    read_all(*segment);
    read_origins(*segment);
    read_all(*LimitsSegment::open(fixture.path));
    if (form % 2 != 0) return 0;
    auto writer = LimitsWriter::open(fixture.path);
    expect(static_cast<bool>(writer), "what can be read can be changed");
    for (const auto* device : {"rxe0", "mlx5_0"})
        if (const auto set = writer->set(Scope::tenant, device, Resource::qp, 2); !set) expect_one_line(set.error());
    writer->release(Scope::tenant, any_device, Resource::mr_bytes);
    read_all(writer->limits());
    read_origins(writer->limits());
    return 0;
}
