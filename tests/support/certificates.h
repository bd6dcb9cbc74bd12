#ifndef BATON_TESTS_SUPPORT_CERTIFICATES_H_
#define BATON_TESTS_SUPPORT_CERTIFICATES_H_

#include <string>

#include "common/rpc/certificate_files.h"
#include "common/rpc/peer_role.h"

namespace baton::testing {

// A folder of certificates as deploy/make-certs.sh makes it, removed with the
// object. Aborts when that fails.
class Certificates {
 public:
  Certificates();
  ~Certificates();
  Certificates(const Certificates&) = delete;
  Certificates& operator=(const Certificates&) = delete;

  const std::string& dir() const { return dir_; }
  std::string File(const std::string& name) const { return dir_ + "/" + name; }
  CertificateFiles Of(PeerRole role) const;

  // New certificates and keys from the same CA, each moved over the old one.
  void Renew() const;

 private:
  std::string dir_;
};

}  // namespace baton::testing

#endif  // BATON_TESTS_SUPPORT_CERTIFICATES_H_
