# SPDX-License-Identifier: Apache-2.0
"""All faults of the driver, and those of an ordinary run."""

import broker_faults as broker
import client_faults as client
import content_faults as content
import process_faults as process

ALL = (process.Kill, process.KillMany, process.Restart, process.Freeze, process.CutLink,
       process.SlowLink, process.HangLink, process.FullDisk, process.FullDiskAlone, broker.Wipe,
       broker.Deliveries, broker.Purge, broker.WipeWhileBusy, broker.LoseStream, broker.LoseLedger,
       client.CancelAtCompletion, client.CancelLarge, client.TwoInitiators, client.Crowd,
       client.MoveData, content.DamageContent, content.HideContent, client.NoNewWork)


def chosen(words):
    """Returns the faults of a list such as "kill,wipe", of "all", or of "" (an ordinary run); ValueError
    names a word that is none."""
    if words == "all":
        return list(ALL)
    names = [name for name in words.split(",") if name]
    if strange := set(names) - {kind.name for kind in ALL}:
        raise ValueError(f"no fault {', '.join(sorted(strange))}; there are "
                         f"{', '.join(kind.name for kind in ALL)}")
    return [kind for kind in ALL if (kind.name in names if names else kind.known is None)]
