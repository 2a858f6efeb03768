//! The arguments of `callward replay`.

use std::path::PathBuf;

use callward_replay::{Capacity, Policy};
use clap::ArgGroup;

use super::ReplayCalls;

#[derive(Debug, clap::Args)]
#[command(
    group(ArgGroup::new("recording").required(true).args(["keys", "calls"])),
    after_help = "\
Replays recorded traffic through the cache itself, on a clock that stands still, and through
simulators of other policies. No server is asked.

--keys reads one key a line, any text without white space; a size in bytes may follow, on each line
or on none (4 GiB or more counts as 4 GiB). Gzip is unpacked. The policies:
  none       nothing is kept
  fifo       first in, first out
  lru        least recently used
  lfu        least frequently used
  s3-fifo    three queues, first in first out
  w-tinylfu  a window, then a gate that lets in what is asked for more often
  callward   the cache of this program
  belady     looks ahead; no policy that stores each miss has more hits. Entries of one size only
  ttl        nothing goes but by time, which keys do not carry: no bound, the most hits there can be
A capacity in bytes charges each entry its size and what this cache keeps about it.

The table has a row for each capacity: the hit rate of each policy in per cent, and by how many
points ours is above lru, and above belady.
--json prints {\"policy\", \"unit\", \"capacity\", \"requests\", \"hits\", \"hit_rate\",
\"most_kept\"} for each policy at each capacity, and at last {\"summary\": {\"keys\", \"requests\",
\"distinct\", \"to_lru\", \"to_belady\"}}, with \"mean\", \"worst\" and where that is for the last two.

--calls reads one call a line, as `serve --record` writes it: {\"tool\", \"args\"?, \"trace\"?,
\"session\"?, \"write\"?, \"error\"?, \"result_sha1\"?, \"result_bytes\"?, \"layer\"?, \"at_ms\"?,
\"duration_ms\"?}; other members are ignored. Calls of one layer of a session run at once. Lines that
are not calls are left out, and reported. The table has a row for each policy, ours first:
  hits, joined      answered with what was kept, or with the result of an identical call that ran
  of calls, reads   the share of both
  stale             answered with another result than the recorded one; unknown without results
  writes swallowed  answered without being run
  saved             what servers would have worked for the calls that were answered without them
  bytes             what is kept at the end
The policies beside ours:
  no cache            every call runs
  flush on any write  knows reads from writes; a write drops everything of its session
  blind, ...          know no writes: every success is kept, by tool and arguments
--json prints one object: {\"calls\", \"sessions\", \"left_out\", \"policies\": [{\"policy\", \"calls\",
\"reads\", \"hits\", \"joined\", \"hit_rate\", \"read_hit_rate\", \"stale\", \"not_compared\",
\"writes_swallowed\", \"repeats_answered\", \"saved_ms\", \"bytes\"}]}.

Exit code: 0; 1 if a file cannot be read, has a line of another kind, or cannot be written; 2 for a
wrong command line.

Examples:
  callward replay --keys requests.keys.gz
  callward replay --keys requests.keys --capacity 128,512 --capacity 4096
  cut -d' ' -f7 access.log | callward replay --keys - --policy lru,callward --json
  callward serve --config callward.toml --record calls.jsonl.gz
  callward replay --calls calls.jsonl.gz"
)]
pub(crate) struct Replay {
    /// Replay the keys of this file (`-`: standard input)
    #[arg(long, value_name = "FILE")]
    pub(crate) keys: Option<PathBuf>,
    /// How much may be kept: a number of entries, or of bytes with a unit such as 64MiB; several
    /// with commas, or repeated (default: a series that fits the number of keys)
    #[arg(long, value_name = "N", value_delimiter = ',', requires = "keys")]
    pub(crate) capacity: Vec<Capacity>,
    /// Only these policies; several with commas, or repeated (default: all that mean something)
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "keys")]
    pub(crate) policy: Vec<Policy>,
    /// Print JSON lines
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) recorded: ReplayCalls,
}
