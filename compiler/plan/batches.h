// Kernels over many small things, as matrices of 3 x 3 are: packets that go across the batch.
#ifndef UMBRA_COMPILER_PLAN_BATCHES_H_
#define UMBRA_COMPILER_PLAN_BATCHES_H_

#include <vector>

#include "compiler/plan/open_rows.h"
#include "compiler/plan/plan.h"

namespace umbra::plan {

/// Where all axes behind one, the first if possible, have a few known indices, such that packets along one of them
/// would be mostly empty, packets go along that axis instead, and all of a lane's points are computed in its packet,
/// one after the other: products of a batch of 4 x 4 matrices, sums over the middle one of three axes, pixels by a
/// matrix of colours. For processors: a GPU's threads are such lanes anyway.
void GoAcrossBatches(Plan* plan);

/// The open extents of kernels that might go so, and of products of matrices that would be such kernels (SumProducts),
/// if they were known.
std::vector<OpenRows> FindOpenBatches(const Plan& plan);

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_BATCHES_H_
