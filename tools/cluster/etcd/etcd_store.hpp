// The real etcd, over gRPC with mTLS. One thread of its own asks it, one request after the other, and posts the answers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/cluster/wire/mailbox.hpp"

namespace rdmaquota::cluster {

class EtcdStore : public Store {
public:
    // `endpoints`: HOST:PORT of the members. Keys are below `prefix`, which ends with '/'.
    EtcdStore(std::vector<std::string> endpoints, const Certificates& certificates, std::string prefix, Mailbox& mailbox);
    ~EtcdStore() override;

    void lead(const std::string& name, std::function<void(Result<Leader>)> answer) override;
    void read(std::function<void(Result<Snapshot>)> answer) override;
    void write(Transaction transaction, std::function<void(Written)> answer) override;

private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace rdmaquota::cluster
