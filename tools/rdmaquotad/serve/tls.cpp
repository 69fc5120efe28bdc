#include "tools/rdmaquotad/serve/tls.hpp"

#include <memory>

#include <fmt/core.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <microhttpd.h>

namespace rdmaquota {
namespace {

gnutls_datum_t datum(const std::string& text) {
    return {reinterpret_cast<unsigned char*>(const_cast<char*>(text.data())), static_cast<unsigned>(text.size())};
}

struct FreeCredentials {
    void operator()(gnutls_certificate_credentials_t credentials) const { gnutls_certificate_free_credentials(credentials); }
};

}  // namespace

Result<void> check_tls(const Tls& tls) {
    gnutls_certificate_credentials_t raw = nullptr;
    if (const int error = gnutls_certificate_allocate_credentials(&raw); error < 0) return Error{gnutls_strerror(error)};
    const std::unique_ptr<std::remove_pointer_t<gnutls_certificate_credentials_t>, FreeCredentials> credentials(raw);
    const auto certificate = datum(tls.certificate), key = datum(tls.key), authorities = datum(tls.client_ca);
    if (const int error = gnutls_certificate_set_x509_key_mem(raw, &certificate, &key, GNUTLS_X509_FMT_PEM); error < 0)
        return Error{fmt::format("metrics_certificate and metrics_key: {}", gnutls_strerror(error))};
    if (tls.client_ca.empty()) return {};
    if (const int count = gnutls_certificate_set_x509_trust_mem(raw, &authorities, GNUTLS_X509_FMT_PEM); count <= 0)
        return Error{fmt::format("metrics_client_ca: {}", count == 0 ? "no certificate is in it" : gnutls_strerror(count))};
    return {};
}

bool has_valid_certificate(MHD_Connection* connection) {
    const auto* about = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    if (about == nullptr || about->tls_session == nullptr) return false;
    auto* session = static_cast<gnutls_session_t>(about->tls_session);
    gnutls_typed_vdata_st purpose{GNUTLS_DT_KEY_PURPOSE_OID, reinterpret_cast<unsigned char*>(const_cast<char*>(GNUTLS_KP_TLS_WWW_CLIENT)), 0};
    unsigned problems = 0;
    return gnutls_certificate_verify_peers(session, &purpose, 1, &problems) == 0 && problems == 0;
}

}  // namespace rdmaquota
