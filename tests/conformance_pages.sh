#!/usr/bin/env bash
# Writes docs/conformance.md anew from what is measured now; for a change that is meant.
#
#   tests/conformance_pages.sh target/release/hikite target/debug
set -euo pipefail
tests="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
hikite="$1" programs="$2" status=0
"$tests/matrix.py" "$hikite" "$programs/fixture-upstream" --write || status=1
"$tests/conformance_client.py" "$programs/client-driver" --write || status=1
"$tests/sdk_servers.py" "$hikite" --write || status=1
"$tests/sdk_clients.py" "$hikite" --write || status=1
exit "$status"
