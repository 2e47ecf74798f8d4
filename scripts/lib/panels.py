# SPDX-License-Identifier: Apache-2.0
"""What dashboards are made of: PromQL, and panels before they have a place. scripts/make_dashboards writes them."""

PANEL_HEIGHT = 8
# Every query looks only at what the variables choose.
CHOSEN = 'namespace=~"$namespace",job=~"$job",instance=~"$instance"'
BUSY, USEFUL, WASTED = 'state="busy"', 'useful="true"', 'useful="false"'
IDLE = 'state="idle"'
PAID = 'state=~"ready|starting|parked|draining"'  # a ready replica may be idle, and is one all the same
INPUTS = 'queue=~".+-in"'


def chosen(metric, labels=""):
    """A selector of the metric's series that the variables choose."""
    return f"{metric}{{{CHOSEN}{',' if labels else ''}{labels}}}"


def rate(metric, labels=""):
    return f"rate({chosen(metric, labels)}[$__rate_interval])"


def total(by, expression):
    return f"sum by ({by}) ({expression})"


def most(by, expression):
    """Of a gauge that several services read from the same source."""
    return f"max by ({by}) ({expression})"


def zero_without(expression, inputs=INPUTS):
    """A gauge of what some input queues have is there with the first of it. Others have none."""
    return f"{expression} or 0 * {most('queue', chosen('muster_queue_backlog', inputs))}"


def quantile(share, by, metric, labels=""):
    return f"histogram_quantile({share}, sum by ({by}, le) ({rate(metric + '_bucket', labels)}))"


def gained(metric, labels=INPUTS):
    return most("queue", f"deriv({chosen(metric, labels)}[$__rate_interval])")


def completed(labels=""):
    return total("queue", rate("muster_items_total", labels))


def arrived(labels=INPUTS):
    """No metric counts what is put. What has come is what is done and what the queue has gained."""
    done = completed("" if labels == INPUTS else labels)
    return (f"clamp_min(({done} or {gained('muster_queue_backlog', labels)} * 0)"
            f" + {gained('muster_queue_backlog', labels)} + {gained('muster_queue_in_flight', labels)}, 0)")


def panel(title, description, unit, *queries, kind="timeseries", width=8, height=PANEL_HEIGHT, stacked=False,
          good=None):
    """A panel; each query is (expression, legend). A stat is green from `good` on, and red below."""
    return {"title": title, "description": description, "unit": unit, "queries": queries,
            "kind": kind, "width": width, "height": height, "stacked": stacked, "good": good}
