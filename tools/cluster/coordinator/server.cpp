#include "tools/cluster/coordinator/server.hpp"

#include <map>
#include <mutex>
#include <optional>

#include <fmt/core.h>
#include <grpcpp/grpcpp.h>

#include "cluster.grpc.pb.h"
#include "tools/cluster/wire/convert.hpp"

namespace rdmaquota::cluster {
namespace {

// The name of the node: the first DNS name in its certificate, else the common name.
std::string peer_name(const grpc::CallbackServerContext& context) {
    for (const auto* property : {GRPC_X509_SAN_PROPERTY_NAME, GRPC_X509_CN_PROPERTY_NAME})
        for (const auto& name : context.auth_context()->FindPropertyValues(property))
            if (!name.empty()) return {name.data(), name.size()};
    return {};
}

}  // namespace

struct Server::Parts {
    class Attached;
    class Service : public wire::Coordinators::CallbackService {
    public:
        explicit Service(Parts& parts) : parts_(parts) {}
        grpc::ServerBidiReactor<wire::Report, wire::Word>* Attach(grpc::CallbackServerContext* context) override;

    private:
        Parts& parts_;
    };

    Parts(Mailbox& mailbox, Listener listener) : mailbox(mailbox), listener(std::move(listener)), service(*this) {}

    Mailbox& mailbox;
    Listener listener;
    Service service;
    std::unique_ptr<grpc::Server> server;
    std::mutex mutex;
    std::map<StreamId, Attached*> streams;
    StreamId last = 0;
};

// One stream. gRPC calls it from its threads; it deletes itself when the call is over.
class Server::Parts::Attached : public grpc::ServerBidiReactor<wire::Report, wire::Word> {
public:
    Attached(Parts& parts, std::string node) : parts_(parts) {
        {
            const std::lock_guard lock(parts_.mutex);
            id_ = ++parts_.last;
            parts_.streams.emplace(id_, this);
        }
        parts_.mailbox.post([&parts, id = id_, node = std::move(node)] { parts.listener.opened(id, node); });
        StartRead(&report_);
    }

    // Only the newest word matters, so no more than one waits. Under the lock of Parts, as finish.
    void push(const ToNode& word) {
        next_.emplace();
        wire::write(word, *next_);
        write_next();
    }
    void finish(const std::string& why) {
        if (std::exchange(finished_, true)) return;
        Finish(why.empty() ? grpc::Status::OK : grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, why));
    }

    void OnReadDone(bool ok) override {
        if (!ok) {
            const std::lock_guard lock(parts_.mutex);
            return finish("");
        }
        parts_.mailbox.post([&parts = parts_, id = id_, word = wire::read(report_)] { parts.listener.received(id, word); });
        report_.Clear();
        StartRead(&report_);
    }
    void OnWriteDone(bool) override {
        const std::lock_guard lock(parts_.mutex);
        writing_ = false;
        write_next();
    }
    void OnDone() override {
        {
            const std::lock_guard lock(parts_.mutex);
            parts_.streams.erase(id_);
        }
        parts_.mailbox.post([&parts = parts_, id = id_] { parts.listener.closed(id); });
        delete this;
    }

private:
    void write_next() {
        if (writing_ || finished_ || !next_) return;
        writing_ = true;
        word_ = std::move(*next_);
        next_.reset();
        StartWrite(&word_);
    }

    Parts& parts_;
    StreamId id_ = 0;
    wire::Report report_;
    wire::Word word_;
    std::optional<wire::Word> next_;
    bool writing_ = false, finished_ = false;
};

grpc::ServerBidiReactor<wire::Report, wire::Word>* Server::Parts::Service::Attach(grpc::CallbackServerContext* context) {
    return new Attached(parts_, peer_name(*context));
}

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Server::~Server() {
    parts_->server->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
    parts_->server->Wait();
}

Result<std::unique_ptr<Server>> Server::start(const std::string& address, const Certificates& certificates, Mailbox& mailbox,
                                              Listener listener) {
    auto parts = std::make_unique<Parts>(mailbox, std::move(listener));
    grpc::SslServerCredentialsOptions tls(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    tls.pem_root_certs = certificates.ca;
    tls.pem_key_cert_pairs.push_back({certificates.key, certificates.certificate});
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(address, grpc::SslServerCredentials(tls), &port);
    builder.RegisterService(&parts->service);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1'000);
    parts->server = builder.BuildAndStart();
    if (!parts->server || port == 0)
        return Error{fmt::format("cannot listen on {}: the address is in use, or the certificate is not valid", address)};
    return std::unique_ptr<Server>(new Server(std::move(parts)));
}

void Server::send(StreamId stream, const ToNode& word) {
    const std::lock_guard lock(parts_->mutex);
    if (const auto found = parts_->streams.find(stream); found != parts_->streams.end()) found->second->push(word);
}

void Server::close(StreamId stream, const std::string& why) {
    const std::lock_guard lock(parts_->mutex);
    if (const auto found = parts_->streams.find(stream); found != parts_->streams.end()) found->second->finish(why);
}

}  // namespace rdmaquota::cluster
