// TLS of a server, by GnuTLS, which libmicrohttpd uses.
#pragma once

#include <string>

#include "policy/result.hpp"

struct MHD_Connection;

namespace rdmaquota {

// PEM texts. Without a certificate there is no TLS.
struct Tls {
    std::string certificate, key;
    std::string client_ca;  // not empty: clients need a certificate of one of these authorities

    bool operator==(const Tls&) const = default;
};

// The error says what GnuTLS does not take: libmicrohttpd says only that it cannot start.
Result<void> check_tls(const Tls& tls);

// Whether the client has shown a valid certificate. libmicrohttpd asks for one, and takes any, and none.
bool has_valid_certificate(MHD_Connection* connection);

}  // namespace rdmaquota
