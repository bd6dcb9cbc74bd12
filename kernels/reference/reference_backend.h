#ifndef BATON_KERNELS_REFERENCE_REFERENCE_BACKEND_H_
#define BATON_KERNELS_REFERENCE_REFERENCE_BACKEND_H_

#include <memory>

#include "kernels/api/backend.h"

namespace baton::kernels {

// The definition of numerics class exact-v1: obvious scalar code on the calling
// thread. Every other backend gives the same bits. Requires the default
// floating-point environment.
std::unique_ptr<Backend> MakeReferenceBackend();

}  // namespace baton::kernels

#endif  // BATON_KERNELS_REFERENCE_REFERENCE_BACKEND_H_
