// The tenants of Slurm jobs, and the events of jobs as `rdmaquota events` follows them.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include <catch2/catch.hpp>

#include "test/unit/tools/tenant_node.hpp"
#include "tools/common/shares/share_mover.hpp"
#include "tools/common/tenants/slurm_jobs.hpp"
#include "tools/rdmaquota/view/event_source.hpp"

using namespace rdmaquota;
namespace fs = std::filesystem;

namespace {

const SlurmJob job{4711, 0, "atlas", "", ""};

Policy bounded() {
    Policy policy;
    row_for(policy.node, "*")[index(Resource::qp)] = 100;
    return policy;
}

std::string event_at(const std::string& time) {
    return R"({"source":"slurm","time":")" + time + R"(","kind":"job","tenant":"slurm/none/job-1","text":"x"})" + "\n";
}

struct JobEvents : TenantNode {
    JobEvents() { fs::create_directories(slurm_directory(path)); }
    std::string file() const { return slurm_directory(path) + "/events"; }
    void add(const std::string& time) const { std::ofstream(file(), std::ios::app) << event_at(time); }
};

}  // namespace

TEST_CASE_METHOD(TenantNode, "a job's tenant is there from its begin to its end") {
    publish(bounded());
    REQUIRE(begin_job(path, job, {}));
    CHECK(find_tenant(path, "slurm/atlas/job-4711"));
    REQUIRE(end_job(path, job.id));
    CHECK_FALSE(find_tenant(path, "slurm/atlas/job-4711"));
}

TEST_CASE_METHOD(TenantNode, "a job whose share cannot be divided leaves no tenant behind") {
    publish(bounded());
    fs::create_directories(shares_path(path) + ".lock/in the way");
    CHECK_FALSE(begin_job(path, job, {}));
    CHECK_FALSE(find_tenant(path, "slurm/atlas/job-4711"));
}

TEST_CASE("a job ends well where no policy is in force") {
    const TemporaryDirectory directory;
    CHECK(end_job(directory.path(), job.id));
}

TEST_CASE_METHOD(JobEvents, "an event of a job is shown though the clock was set back") {
    publish({});
    EventSource source(path);
    REQUIRE(source.open());
    add("2026-01-01T00:00:02.0Z");
    CHECK(source.take().size() == 1);
    add("2026-01-01T00:00:01.0Z");
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // jobs are looked at once a second
    CHECK(source.take().size() == 1);
}

TEST_CASE_METHOD(JobEvents, "each event of a job is read once, also where the file became the older one") {
    JobEventCursor next;
    const auto read = [&] { return job_events(path, next).size(); };
    CHECK(read() == 0);
    add("1");
    add("2");
    CHECK(read() == 2);
    CHECK(read() == 0);
    std::ofstream(file(), std::ios::app) << R"({"source":"slurm",)";
    CHECK(read() == 0);
    std::ofstream(file(), std::ios::app) << "\"time\":\"3\"}\n";
    add("4");
    fs::rename(file(), file() + ".old");
    CHECK(read() == 0);
    add("5");
    CHECK(read() == 3);
    CHECK(read() == 0);
    CHECK(job_events(path).size() == 5);
}

TEST_CASE_METHOD(JobEvents, "events of jobs are read from the beginning where their file is another one") {
    JobEventCursor next;
    const auto read = [&] { return job_events(path, next).size(); };
    add("1");
    add("2");
    CHECK(read() == 2);
    fs::resize_file(file(), event_at("1").size());
    CHECK(read() == 1);
    std::ofstream(file() + ".new") << event_at("3");
    fs::rename(file() + ".new", file());
    CHECK(read() == 1);
}
