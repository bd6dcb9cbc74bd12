#include "router/routing/unseen_placements.h"

#include <gtest/gtest.h>

namespace baton::router {
namespace {

TEST(UnseenPlacementsTest, EachCountsUntilALoadKnowsOfIt) {
  UnseenPlacements unseen;
  EXPECT_EQ(unseen.blocks(), 0u);
  unseen.Add(AttemptId(3), 10);
  unseen.Add(AttemptId(7), 20);
  unseen.SeenUpTo(AttemptId(0));
  EXPECT_EQ(unseen.blocks(), 30u) << "a load from before";
  unseen.SeenUpTo(AttemptId(5));
  EXPECT_EQ(unseen.blocks(), 20u);
  unseen.SeenUpTo(AttemptId(7));
  EXPECT_EQ(unseen.blocks(), 0u);
}

TEST(UnseenPlacementsTest, OrUntilItIsOver) {
  UnseenPlacements unseen;
  unseen.Add(AttemptId(1), 10);
  unseen.Add(AttemptId(2), 20);
  unseen.Remove(AttemptId(1));
  unseen.Remove(AttemptId(1));
  unseen.Remove(AttemptId(9));
  EXPECT_EQ(unseen.blocks(), 20u);
  unseen.SeenUpTo(AttemptId(2));
  EXPECT_EQ(unseen.blocks(), 0u);
}

}  // namespace
}  // namespace baton::router
