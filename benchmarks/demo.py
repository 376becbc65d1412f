"""Run the demo and keep its table: the README shows it.

python -m benchmarks.demo
"""

import json
import subprocess
import sys
import tempfile

from benchmarks import results

SUITE = "demo"


def main() -> None:
    made_with = results.provenance()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "repconc.cli.main", "demo", "--json", "--output", folder]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    for row in json.loads(printed):
        print(results.append(SUITE, row, made_with))


if __name__ == "__main__":
    main()
