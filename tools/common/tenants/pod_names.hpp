// Names of Kubernetes' pods, for people who know a pod by its namespace and name and not by its uid. One thread.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>

namespace rdmaquota {

// Names of pods by their uids, taken from the directories that kubelet creates for their logs: NAMESPACE_NAME_UID.
class PodNames {
public:
    explicit PodNames(std::string directory = "/var/log/pods") : directory_(std::move(directory)) {}

    struct Name {
        std::string name_space, pod;
    };
    // Of a pod that kubelet does not list: no namespace, and the uid as its name. Looks again after ten seconds.
    Name of(const std::string& uid);

private:
    void look();

    std::string directory_;
    std::map<std::string, Name> names_;
    std::chrono::steady_clock::time_point looked_{};
};

// "NAMESPACE/NAME" of the pod whose uid is the last part of the tenant's name, as a template with {pod} has it; empty: it is none that
// kubelet lists.
std::string pod_of_tenant(PodNames& names, std::string_view tenant);
std::string pod_of_tenant(std::string_view tenant);

}  // namespace rdmaquota
