// Usage by pod and by job.
#include <catch2/catch.hpp>

#include <filesystem>

#include "test/unit/temporary_directory.hpp"
#include "tools/rdmaquotad/metrics/metrics.hpp"
#include "tools/rdmaquotad/metrics/workloads.hpp"

using namespace rdmaquota;

namespace {

ProcessView process(std::string cgroup, std::uint64_t qps) {
    ProcessView view{};
    view.devices = {{"rxe0", {{Resource::qp, qps, unlimited, {}}}}};
    view.cgroup = std::move(cgroup);
    return view;
}

TenantView tenant(std::vector<ProcessView> processes) {
    TenantView view{};
    view.processes = std::move(processes);
    return view;
}

const std::string uid = "1b2c-3d", pod = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1b2c_3d.slice/cri-containerd-9f.scope";

}  // namespace

TEST_CASE("workloads: a pod's uid and a job's number are in the cgroups that kubelet and slurmd make, and in no others") {
    CHECK(pod_uid(pod) == uid);
    CHECK(pod_uid("/kubepods.slice/kubepods-pod1b2c_3d.slice") == uid);
    CHECK(pod_uid("/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod1b2c_3d.slice/a") == uid);
    CHECK(pod_uid("/kubepods/burstable/pod1b2c-3d/9f") == uid);
    CHECK(pod_uid(pod + "/kubepods-podff.slice") == uid);
    for (const auto* other : {"", "/", "/kubepods.slice", "/kubepods/besteffort", "/user.slice/user-1.slice/kubepods-pod1b2c.slice"})
        CHECK_FALSE(pod_uid(other));
    CHECK(job_id("/system.slice/slurmstepd.scope/job_123/step_0/user/task_0") == "123");
    CHECK(job_id("/system.slice/node7_slurmstepd.scope/job_9") == "9");
    for (const auto* other : {"", "/system.slice/slurmstepd.scope", "/system.slice/slurmstepd.scope/job_x", "/user.slice/job_1/job_1"})
        CHECK_FALSE(job_id(other));
}

TEST_CASE("workloads: kubelet's directories name a pod and its namespace; without one, the uid does") {
    TemporaryDirectory logs;
    PodNames names(logs.path());
    std::filesystem::create_directory(logs / "blue-team_worker-0_1b2c-3d");
    std::filesystem::create_directory(logs / "lost+found");
    CHECK(names.of(uid).name_space == "blue-team");
    CHECK(names.of(uid).pod == "worker-0");
    CHECK(names.of("ff").name_space.empty());
    CHECK(names.of("ff").pod == "ff");
}

TEST_CASE("workloads: a tenant that is named by a pod's uid has the pod's name") {
    TemporaryDirectory logs;
    PodNames names(logs.path());
    std::filesystem::create_directory(logs / "blue-team_worker-0_0f8fad5b-d9cb-469f-a165-70867728950e");
    CHECK(pod_of_tenant(names, "pods/0f8fad5b_d9cb_469f_a165_70867728950e") == "blue-team/worker-0");
    CHECK(pod_of_tenant(names, "0f8fad5b-d9cb-469f-a165-70867728950e") == "blue-team/worker-0");
    for (const auto* other : {"", "pods", "pods/0f8fad5b_d9cb_469f_a165_70867728950f", "pods/0f8fad5b_d9cb_469f_a165_70867728950z"})
        CHECK(pod_of_tenant(names, other).empty());
}

TEST_CASE("workloads: processes of one pod or job are added up, for what was asked, and others are left out") {
    TemporaryDirectory logs;
    std::filesystem::create_directory(logs / "blue-team_worker-0_1b2c-3d");
    PodNames names(logs.path());
    MetricsAccess asked;
    asked.pods = true;
    const auto view = tenant({process(pod, 3), process(pod, 4), process("/system.slice/slurmstepd.scope/job_123", 5), process("", 6)});
    Workloads pods(asked, names);
    pods.add("blue", view);
    REQUIRE(pods.usage().size() == 1);
    CHECK(pods.usage().at({"blue", "blue-team", "worker-0", "", "rxe0", "qp"}) == 7);
    asked.jobs = true;
    Workloads both(asked, names);
    both.add("blue", view);
    CHECK(both.usage().size() == 2);
    CHECK(both.usage().at({"blue", "", "", "123", "rxe0", "qp"}) == 5);
    MetricsInput input;
    input.workloads = {both.usage(), both.left_out()};
    CHECK_THAT(metrics_text(input),
               Catch::Contains(R"(rdmaquota_workload_usage{tenant="blue",namespace="blue-team",pod="worker-0",job_id="",device="rxe0",resource="qp"} 7)"));
}

TEST_CASE("workloads: there are at most so many series, and the others are counted") {
    PodNames names("/nonexistent");
    MetricsAccess asked;
    asked.jobs = true;
    Workloads workloads(asked, names);
    std::vector<ProcessView> processes;
    for (std::size_t i = 0; i < Workloads::most + 5; ++i) processes.push_back(process("/system.slice/slurmstepd.scope/job_" + std::to_string(i), 1));
    workloads.add("slurm", tenant(processes));
    CHECK(workloads.usage().size() == Workloads::most);
    CHECK(workloads.left_out() == 5);
}
