#include "common/rpc/certificate_files.h"

#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace baton {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;
constexpr mode_t kForEveryone = S_IRWXO;

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
void FreeStack(STACK_OF(X509) * stack) { sk_X509_pop_free(stack, X509_free); }

using Bio = std::unique_ptr<BIO, Freed<BIO_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, Freed<GENERAL_NAMES_free>>;
using Store = std::unique_ptr<X509_STORE, Freed<X509_STORE_free>>;
using StoreContext =
    std::unique_ptr<X509_STORE_CTX, Freed<X509_STORE_CTX_free>>;
using Stack = std::unique_ptr<STACK_OF(X509), Freed<FreeStack>>;

// One of the files, for error messages.
struct Source {
  const char* option;
  const std::string& path;
};

absl::Status Bad(const Source& source, std::string_view what) {
  ERR_clear_error();
  return absl::InvalidArgumentError(
      StrCat(source.option, ": ", source.path, ": ", what));
}

absl::StatusOr<std::string> ReadAll(const Source& source, bool secret) {
  const int fd =
      open(source.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return Bad(source, strerror(errno));
  struct stat status{};
  std::string text;
  absl::Status result;
  if (fstat(fd, &status) != 0) {
    result = Bad(source, strerror(errno));
  } else if (!S_ISREG(status.st_mode)) {
    result = Bad(source, "not a regular file");
  } else if (secret && (status.st_mode & kForEveryone) != 0) {
    result = Bad(source, "a private key that everyone may read (chmod o= it)");
  } else if (static_cast<uint64_t>(status.st_size) > kMaxFileBytes) {
    result = Bad(source, StrCat("got ", status.st_size, " bytes, allowed ",
                                kMaxFileBytes));
  } else {
    text.resize(static_cast<size_t>(status.st_size));
    const ssize_t got = read(fd, text.data(), text.size());
    if (got < 0) result = Bad(source, strerror(errno));
    text.resize(got < 0 ? 0 : static_cast<size_t>(got));
  }
  close(fd);
  if (!result.ok()) return result;
  return text;
}

Bio Open(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

absl::StatusOr<Stack> ReadCertificates(const Source& source) {
  BATON_ASSIGN_OR_RETURN(const std::string text, ReadAll(source, false));
  const Bio bio = Open(text);
  Stack stack(sk_X509_new_null());
  while (X509* next = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    sk_X509_push(stack.get(), next);
  }
  const unsigned long error = ERR_peek_last_error();
  const bool end = ERR_GET_LIB(error) == ERR_LIB_PEM &&
                   ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!end) return Bad(source, "a damaged certificate");
  if (sk_X509_num(stack.get()) == 0) {
    return Bad(source, "no certificate in PEM form");
  }
  return stack;
}

int NoPassword(char*, int, int, void*) { return -1; }

absl::StatusOr<Key> ReadKey(const Source& source) {
  BATON_ASSIGN_OR_RETURN(const std::string text, ReadAll(source, true));
  const Bio bio = Open(text);
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassword, nullptr));
  if (key == nullptr) {
    return Bad(source, text.find("ENCRYPTED") == std::string::npos
                           ? "no private key in PEM form"
                           : "an encrypted key is not supported");
  }
  return key;
}

int64_t UnixTime(const ASN1_TIME* time) {
  tm parts{};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? timegm(&parts) : 0;
}

std::string DateOf(int64_t unix_s) {
  const time_t time = unix_s;
  tm parts{};
  char text[40];
  gmtime_r(&time, &parts);
  strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string SubjectOf(const X509* certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(bio.get(), X509_get_subject_name(certificate), 0,
                     XN_FLAG_RFC2253);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return std::string(text, static_cast<size_t>(std::max(size, 0L)));
}

std::vector<PeerRole> RolesOf(const X509* certificate) {
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::vector<PeerRole> roles;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
    const auto role = ParsePeerRoleUri(
        {reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
         static_cast<size_t>(ASN1_STRING_length(uri))});
    if (role) roles.push_back(*role);
  }
  return roles;
}

absl::Status CheckIssuer(const Source& source, STACK_OF(X509) * chain,
                         const Source& ca_source, STACK_OF(X509) * cas,
                         int64_t now_s) {
  const Store store(X509_STORE_new());
  for (int i = 0; i < sk_X509_num(cas); ++i) {
    X509_STORE_add_cert(store.get(), sk_X509_value(cas, i));
  }
  const StoreContext context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), sk_X509_value(chain, 0),
                      chain);
  X509_STORE_CTX_set_time(context.get(), 0, static_cast<time_t>(now_s));
  if (X509_verify_cert(context.get()) == 1) return absl::OkStatus();
  return Bad(source, StrCat("not issued by a CA in ", ca_source.path, " (",
                            X509_verify_cert_error_string(
                                X509_STORE_CTX_get_error(context.get())),
                            ")"));
}

absl::Status CheckRole(const Source& source, const CertificateInfo& info,
                       PeerRole role) {
  if (std::ranges::find(info.roles, role) != info.roles.end()) {
    return absl::OkStatus();
  }
  return Bad(source, StrCat("lacks the role ", PeerRoleName(role),
                            " (expected the URI ", PeerRoleUri(role),
                            " in subjectAltName, got ",
                            JoinPeerRoles(info.roles, ", "), ")"));
}

}  // namespace

absl::StatusOr<CertificateInfo> CheckCertificateFiles(
    const CertificateFiles& files, std::optional<PeerRole> role,
    int64_t now_s) {
  const Source cert_source{"tls-cert", files.cert};
  const Source key_source{"tls-key", files.key};
  const Source ca_source{"tls-ca", files.ca};
  Stack cas;
  if (!files.ca.empty()) {
    BATON_ASSIGN_OR_RETURN(cas, ReadCertificates(ca_source));
  }
  CertificateInfo info;
  if (files.cert.empty()) return info;

  BATON_ASSIGN_OR_RETURN(const Stack chain, ReadCertificates(cert_source));
  BATON_ASSIGN_OR_RETURN(const Key key, ReadKey(key_source));
  X509* own = sk_X509_value(chain.get(), 0);
  if (X509_check_private_key(own, key.get()) != 1) {
    return Bad(key_source,
               StrCat("does not belong to the certificate in ", files.cert));
  }
  info.subject = SubjectOf(own);
  info.not_after_s = UnixTime(X509_get0_notAfter(own));
  info.roles = RolesOf(own);
  info.sha256.resize(32);
  X509_digest(own, EVP_sha256(),
              reinterpret_cast<unsigned char*>(info.sha256.data()), nullptr);
  if (info.not_after_s <= now_s) {
    return Bad(cert_source, StrCat("expired at ", DateOf(info.not_after_s)));
  }
  const int64_t not_before_s = UnixTime(X509_get0_notBefore(own));
  if (not_before_s > now_s) {
    return Bad(cert_source, StrCat("not valid before ", DateOf(not_before_s)));
  }
  if (role && cas != nullptr) {
    BATON_RETURN_IF_ERROR(
        CheckIssuer(cert_source, chain.get(), ca_source, cas.get(), now_s));
  }
  if (role) BATON_RETURN_IF_ERROR(CheckRole(cert_source, info, *role));
  return info;
}

}  // namespace baton
