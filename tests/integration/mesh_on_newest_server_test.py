# SPDX-License-Identifier: Apache-2.0
"""The tests of mesh_test and rolling_test on the last server of MUSTER_NATS_SERVERS."""

import harness
import mesh_test
import rolling_test
from mesh import NATS_SERVERS


class OnNewestServer:
    nats_server = NATS_SERVERS[-1]

    def setUp(self):
        if len(NATS_SERVERS) == 1:
            self.skipTest("MUSTER_NATS_SERVERS names one server only")
        super().setUp()


class WalkTest(OnNewestServer, mesh_test.WalkTest):
    pass


class UploadTest(OnNewestServer, mesh_test.UploadTest):
    pass


class KillTest(OnNewestServer, mesh_test.KillTest):
    pass


class LongLeaseTest(OnNewestServer, mesh_test.LongLeaseTest):
    pass


class CancelTest(OnNewestServer, mesh_test.CancelTest):
    pass


class MissingVersionTest(OnNewestServer, mesh_test.MissingVersionTest):
    pass


class StallTest(OnNewestServer, mesh_test.StallTest):
    pass


class MixedVersionsTest(OnNewestServer, rolling_test.MixedVersionsTest):
    pass


if __name__ == "__main__":
    harness.main()
