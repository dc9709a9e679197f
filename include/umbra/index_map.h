// Every index map; umbra/index_map/definition.h says what one is.
#ifndef UMBRA_INDEX_MAP_H_
#define UMBRA_INDEX_MAP_H_

#include "umbra/index_map/complex.h"
#include "umbra/index_map/rearrange.h"
#include "umbra/index_map/scan.h"
#include "umbra/index_map/select.h"
#include "umbra/index_map/window.h"

#endif  // UMBRA_INDEX_MAP_H_
