// The identity under which ledgers have an RDMA device, as a program that opens it enters it.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

// The name of the device's uverbs device. Where the machine has no such device, the name itself.
inline std::string uverbs_identity_of(const std::string& device) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/sys/class/infiniband_verbs", error)) {
        std::ifstream file(entry.path() / "ibdev");
        std::string name;
        if (file >> name && name == device) return entry.path().filename().string();
    }
    return device;
}
