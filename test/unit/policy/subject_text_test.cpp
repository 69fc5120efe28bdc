#include "policy/subject_text.hpp"

#include <catch2/catch.hpp>

using namespace rdmaquota;

TEST_CASE("the cgroup of a process is its path in the unified hierarchy") {
    CHECK(cgroup_path("0::/user.slice/user-1000.slice/session-3.scope\n") ==
          "/user.slice/user-1000.slice/session-3.scope");
    const std::string slurm = "/system.slice/slurmstepd.scope/job_3385/step_0/user/task_0";
    CHECK(cgroup_path("0::" + slurm + "\n") == slurm);
    const std::string pod =
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod2a11_77.slice/cri-containerd-6a3.scope";
    CHECK(cgroup_path("0::" + pod + "\n") == pod);
    const std::string podman = "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-8f.scope/container";
    CHECK(cgroup_path("0::" + podman + "\n") == podman);
    CHECK(cgroup_path("0::/odd:name,with=signs\n") == "/odd:name,with=signs");
}

TEST_CASE("with cgroup v1 it is the path of rdma, else pids, else systemd's own") {
    const std::string text =
        "13:misc:/\n"
        "12:rdma:/\n"
        "11:cpu,cpuacct:/kubepods/burstable/pod1/aa\n"
        "10:net_cls,pids:/kubepods/burstable/pod1/bb\n"
        "1:name=systemd:/kubepods/burstable/pod1/cc\n";
    CHECK(cgroup_path(text) == "/kubepods/burstable/pod1/bb");
    CHECK(cgroup_path(text + "0::/\n") == "/kubepods/burstable/pod1/bb");
    CHECK(cgroup_path(text + "0::/system.slice/a.service\n") == "/system.slice/a.service");
    CHECK(cgroup_path("12:rdma:/slurm/uid_1000/job_7\n10:pids:/b\n0::/\n") == "/slurm/uid_1000/job_7");
    CHECK(cgroup_path("11:cpu:/a\n1:name=systemd:/init.scope\n") == "/init.scope");
    CHECK(cgroup_path("12:rdma:/\n1:name=systemd:/\n") == "/");
    CHECK(cgroup_path("11:cpu:/a\n2:pidsx:/b\n3:xname=systemd:/c\n").empty());
    CHECK(cgroup_path("7::/no/controller\n").empty());  // a named hierarchy without its name is none of ours
}

TEST_CASE("a process that sees the root of its cgroup namespace only is in /") {
    CHECK(cgroup_path("0::/\n") == "/");
    CHECK(cgroup_path("12:rdma:/\n10:pids:/\n0::/\n") == "/");
}

TEST_CASE("a cgroup outside the reader's namespace is not known") {
    CHECK(cgroup_path("0::/..\n").empty());
    CHECK(cgroup_path("0::/../../system.slice/a.service\n").empty());
    CHECK(cgroup_path("12:rdma:/../job_7\n0::/\n").empty());
    CHECK(cgroup_path("0::/..hidden\n") == "/..hidden");
}

TEST_CASE("a cgroup that was removed still counts") {
    CHECK(cgroup_path("0::/slurm/job_7 (deleted)\n") == "/slurm/job_7");
    CHECK(cgroup_path("0::/slurm/job_7 (deleted)/x\n") == "/slurm/job_7 (deleted)/x");
}

TEST_CASE("a text about cgroups that is cut short or nonsense says nothing") {
    CHECK(cgroup_path("").empty());
    CHECK(cgroup_path("\n\n").empty());
    CHECK(cgroup_path("0::/slurm/job_7").empty());
    CHECK(cgroup_path("0::\n").empty());
    CHECK(cgroup_path("0:\n0\n").empty());
    CHECK(cgroup_path("0::relative\n").empty());
    CHECK(cgroup_path("nonsense\n0::/a\n") == "/a");
}

TEST_CASE("an id in a user namespace is translated by the map") {
    const std::string_view whole = "         0          0 4294967295\n";
    CHECK(id_outside(whole, 0) == 0U);
    CHECK(id_outside(whole, 1000) == 1000U);
    CHECK(id_outside(whole, UINT32_MAX) == std::nullopt);
    const std::string_view rootless = "         0       1000          1\n         1     100000      65536\n";
    CHECK(id_outside(rootless, 0) == 1000U);
    CHECK(id_outside(rootless, 1) == 100000U);
    CHECK(id_outside(rootless, 65536) == 165535U);
    CHECK(id_outside(rootless, 65537) == std::nullopt);
    CHECK(id_outside("", 0) == std::nullopt);  // a namespace without a map yet
}

TEST_CASE("a map of ids that is cut short or nonsense maps nothing") {
    CHECK(id_outside("0 1000 1", 0) == std::nullopt);
    CHECK(id_outside("0 1000\n", 0) == std::nullopt);
    CHECK(id_outside("0 x 1\n", 0) == std::nullopt);
    CHECK(id_outside("99999999999 0 1\n", 0) == std::nullopt);
    CHECK(id_outside("0 4294967290 100\n", 50) == std::nullopt);
    CHECK(id_outside("-1 -1 -1\n0 7 1\n", 0) == 7U);
}

TEST_CASE("the status of a process tells its effective ids and its groups") {
    const auto ids = process_ids(
        "Name:\tUid:\\n7\nUmask:\t0022\nTgid:\t42\nUid:\t1000\t0\t1002\t1003\nGid:\t100\t101\t102\t103\n"
        "FDSize:\t64\nGroups:\t4 24 100 4000000000 \nNStgid:\t42\n");
    CHECK(ids.user == uid_t{0});
    CHECK(ids.group == gid_t{101});
    CHECK(ids.groups == std::vector<gid_t>{4, 24, 100, 4000000000});
    CHECK(process_ids("Uid:\t1\t2\t3\t4\nGid:\t1\t2\t3\t4\nGroups:\t \n").groups.empty());
}

TEST_CASE("a status without ids tells none") {
    for (const auto* text : {"", "Uid:", "Uid:\n", "Uid:\t1000\n", "Uid:\t1000\t2000", "uid:\t1\t2\n", "Uid:\tx\ty\n"})
        CHECK_FALSE(process_ids(text).user);
    CHECK(process_ids("Groups:\t1 2 x 3\n").groups == std::vector<gid_t>{1, 2});
}
