//! The words themselves, as data: each group says what its verbs do to the world.
//!
//! Where a verb stands in two minds it is in the stricter group, or in none: a verb that is not here
//! says nothing, which is safe. Left out on purpose: `watch`, `scan`, `crawl` (they may start
//! something that goes on), `select`, `review`, `resolve`, `open`, `test` and `generate` (anything).
//!
//! The lists after the verbs tell how a word behaves in a name:
//!
//! - a word in no further list is a verb wherever it stands;
//! - [`VERB_IN_FRONT`]: a verb when it leads, a noun after a verb (`update_page`, `get_update`);
//! - [`VERB_OR_NOUN`]: perhaps a noun even when it leads, so that it does not decide alone
//!   (`post_message`, `post_stats`), and certainly one after a verb;
//! - [`MOSTLY_NOUN`]: a noun even when it leads, if another verb follows (`log_add`).
//!
//! Each string is a line of words, parted by spaces.

use super::{Use, VerbKind};

/// Looks, asks, computes from what it is given.
pub(in crate::infer) const READ: &[&str] = &[
    // look something up
    "browse count describe discover enumerate fetch find get grep inspect list locate",
    "lookup ls peek ping query read retrieve scrape search show status tail view whoami",
    // judge something
    "aggregate analyse analyze assess check compare detect diagnose diff display explain",
    "classify identify inquire lint measure preview recommend rerank",
    "suggest summarise summarize trace validate verify wait",
    // compute from the arguments alone
    "calculate compute decode echo encode estimate forecast geocode hash parse predict",
    "recognize tokenize translate transcribe",
    // hand something over; see HANDING_OVER
    "download export extract render screenshot",
    "autocomplete cite correlate deduce detokenize differentiate enquire explore glob",
    "infer introspect nslookup observe proofread solve stat traceroute typecheck whois",
];

/// Things to know about something: a name that ends so, and has no verb, asks for them.
pub(in crate::infer) const READ_NOUNS: &[&str] =
    &["detail details info information metadata overview schema statistics stats"];

/// Reads in prose only: `Returns the order` reads, `return_order` sends the goods back.
pub(in crate::infer) const READ_IN_PROSE: &[&str] = &["iterate look obtain provide return"];

/// Makes something new beside what is there.
pub(in crate::infer) const ADD: &[&str] = &[
    "add append attach author clone comment compose copy create draft duplicate fork",
    "import insert log make new post prepend provision record register reply schedule",
    "submit",
    "backup bootstrap contribute crosspost enqueue ingest init initialise initialize",
    "instantiate issue memorize mint mkdir onboard populate propose queue raise remember",
    "replicate repost retweet scaffold seed shorten spawn tweet",
];

/// Marks, switches, places among others: as easily taken back as done.
pub(in crate::infer) const MARK: &[&str] = &[
    "acknowledge associate bind bookmark favorite flag follow hide label link lock mute pin",
    "reopen star subscribe tag unarchive unassign unblock unflag unfollow unhide unlock",
    "unmute unpin unshare unstar unsubscribe untag undelete",
    "ack annotate dislike downvote endorse enrol enroll favourite join like mount react stage",
    "unban uncheck unclaim uncordon unfavorite unfavourite unfreeze unhighlight unlabel",
    "unmount unpause unsave unsilence unsnooze unstage unsuspend untrash unwatch upvote",
];

/// Sets something going, or stops it.
pub(in crate::infer) const ACT: &[&str] = &[
    "build commit connect disconnect launch navigate notify redo retry scroll start stop",
    "toggle trigger undo vote",
    "authenticate compact compile emit focus go login play power rebuild recalculate",
    "recompute refresh reindex reload replay reprocess requeue resync rewind shuffle skip",
    "speak train vacuum wake zoom",
];

/// Puts something into a state that is named by the arguments.
pub(in crate::infer) const SET: &[&str] = &[
    // values
    "configure define ensure format put reformat rename reorder replace reschedule resize save",
    "set sort store sync synchronize unset update upsert write",
    // places and owners
    "allow archive assign block deny detach disassociate grant move reassign relocate share",
    "unbind unlink",
    // states
    "accept activate approve close deactivate decline deprecate disable dismiss enable mark",
    "pause quarantine reject restore resume snooze suspend unpublish",
    "allowlist arm blacklist blocklist chmod chown cordon defer delegate deprioritize dim",
    "disarm disqualify drain freeze hibernate isolate leave logout maximize minimize mv",
    "override persist postpone prioritize qualify reactivate redirect reinstate reroute retag",
    "retire retitle seal setup silence switch taint touch triage turn unapprove unlist unseal",
    "whitelist",
];

/// Changes what it finds; doing it twice does it twice.
pub(in crate::infer) const CHANGE: &[&str] = &[
    // runs what it is told
    "call eval evaluate exec execute handle interact invoke manage perform process run",
    // cannot be taken back by the sender
    "book broadcast buy charge checkout dispatch donate email forward invite mail message",
    "order pay publish purchase refund send spend trade transfer withdraw",
    // may replace what is there
    "upload",
    // depends on the state it finds: an edit made twice may be two edits
    "adjust alter apply authorize change complete decrement deploy edit escalate increment",
    "install merge migrate modify patch promote pull push reauthorize rebase rotate scale swap",
    "transition upgrade",
    // drives a user interface
    "click drag fill hover press tap type",
    "airdrop amend announce bid borrow bump claim confirm consume crop cut deduct dedupe",
    "deduplicate demote deposit dial extend fax finalize fix flash flip fulfil fulfill inject",
    "lend nack nudge optimise optimize paste place rebalance recategorize reconcile recreate",
    "redeem refactor regenerate reimburse reissue rekey remediate renew rent repair repay",
    "rerun resend reserve restock retrain reword rewrite rollout settle ship sign split",
    "squash stake stash swipe transform trim unmerge unstake unwrap wrap",
];

/// Takes away.
pub(in crate::infer) const DELETE: &[&str] = &[
    "abort cancel clear deauthorize decommission del delete deprovision deregister destroy",
    "discard drop empty erase evict expunge flush forget invalidate kill nuke obliterate",
    "overwrite prune purge remove reset revoke rm rmdir shred terminate trash truncate undeploy",
    "uninstall unregister wipe zap",
    "abandon annul deallocate disenroll dismantle eject expel expire kick nullify offboard",
    "redact rescind retract scrub strip teardown unenroll unfriend unpair unprovision unsend",
    "void",
];

/// Puts away, though it can be had back: on the far side of [`DELETE`] for those who look for it.
pub(in crate::infer) const PUT_AWAY: &[&str] = &["archive unlink unpublish unset"];

/// Loses something, each time.
pub(in crate::infer) const DAMAGE: &[&str] = &[
    "ban downgrade failover pop reboot restart revert rollback shutdown",
    "burn dequeue failback reimage shut switchover",
];

/// In front these are verbs; after a verb they are what it is about.
pub(in crate::infer) const VERB_IN_FRONT: &[&str] = &[
    "allow archive block check clone commit copy drop edit fetch invite launch",
    "list merge move patch pause pull push read reset run save search set share show",
    "start stop trash update upgrade upload write",
    "airdrop announce arm bid claim compact compile confirm contribute cut defer delegate",
    "deposit dim explore extend fax fix flash flip focus go join leave lend like login logout",
    "mount override play power qualify react redirect refresh rent replay retire rewind seed",
    "setup ship shuffle sign silence skip stage switch taint train zoom",
];

/// In front these may be either; after a verb they are what it is about.
pub(in crate::infer) const VERB_OR_NOUN: &[&str] = &[
    "book build call change charge comment count diff draft email favorite flag forecast",
    "fork hash import label link lock lookup mail mark message new order ping post preview",
    "process purchase query refund reply schedule scroll star store swap tag tail trace trade",
    "bookmark format sort transition transfer trigger type view vote wait",
    "stat",
];

/// Even in front, these are what another verb is about.
pub(in crate::infer) const MOSTLY_NOUN: &[&str] = &[
    "author clear complete compute display empty log record scale status",
    "backup issue place queue rollout",
];

/// Verbs that read these things; of others they say nothing.
pub(in crate::infer) const READING: &[(&str, &str)] = &[
    // code and chance from the arguments alone; what is generated may else be stored
    (
        "generate",
        "code embedding embeddings expression guid hash locator password query regex slug snippet \
         sql uuid",
    ),
    // a value in another form; a converted lead is a customer
    (
        "convert",
        "csv currencies currency date html json markdown temperature text time timezone timezones \
         unit units xml yaml",
    ),
    // a picture, not a payment
    ("capture", "frame image photo screenshot snapshot"),
    // a name brought back to what it stands for; a resolved issue is closed
    (
        "resolve",
        "address alias dns domain handle host hostname id ids ip name path reference symbol url \
         username",
    ),
];

/// Verbs that leave all to the word after them: `take_screenshot`, `perform_search`.
pub(in crate::infer) const LIGHT: &[&str] = &["take do perform"];

/// Words that join two verbs.
pub(in crate::infer) const JOINS: &[&str] = &["and or then"];

/// Words of a name that say nothing about what the tool does.
pub(in crate::infer) const FILLERS: &[&str] = &["mcp api tool tools bulk batch"];

/// Second words that turn a verb into something else: `check_in`, `get_rid_of`.
pub(in crate::infer) const TURNED: &[(&str, &[&str])] = &[
    ("check", &["in", "off", "out"]),
    ("fetch", &["up"]),
    ("get", &["rid", "started", "up"]),
    ("log", &["in", "off", "out"]),
    ("read", &["out"]),
    ("show", &["up"]),
    ("write", &["off"]),
];

/// Words a question begins with. A description that does, or a name, asks and changes nothing.
pub(in crate::infer) const QUESTIONS: &[&str] =
    &["are has how is what when where whether which who whose"];

/// Words that turn what follows them round: `does not delete`.
pub(in crate::infer) const NEGATIONS: &[&str] =
    &["not never without no cannot neither nor doesn don won isn non"];

/// Phrases of a description that warn of a loss. Each is matched without its first letter, which
/// may be a capital.
pub(in crate::infer) const WARNINGS: &[&str] = &[
    "permanently",
    "irreversibl",
    "cannot be undone",
    "can't be undone",
    "overwrit",
];

/// Verbs of a description that leave to another word what is done: `Runs a search`.
pub(in crate::infer) const RUNS: &[&str] = &["run execute perform"];

/// Words of a name that say that each call moves on: `get_next_job` may take the job.
pub(in crate::infer) const CURSORS: &[&str] = &["next scroll"];

/// Things that wait to be taken: to get the next one may be to take it.
pub(in crate::infer) const QUEUED: &[&str] = &[
    "action command entry instruction item job lead message messages order question request",
    "step task ticket work",
];

/// Words of a name for what changes by itself, though nobody writes: time and chance, and work that
/// goes on elsewhere. Waiting for something is of no use twice.
pub(in crate::infer) const CLOCKS: &[&str] = &[
    "now today clock random uuid ulid guid nonce dice status progress health wait ping poll",
    "tail monitor watch live screenshot log logs metrics processes uptime",
];

/// Together with a word of [`TIMES`], these mean the clock too: `get_current_time`.
pub(in crate::infer) const CURRENT: &[&str] = &["current local system server"];

/// What a clock shows.
pub(in crate::infer) const TIMES: &[&str] = &["time date datetime timestamp"];

/// Verbs that hand something over, unless it is said where they put it.
pub(in crate::infer) const HANDING_OVER: &[&str] = &["download export extract render screenshot"];

/// Of these, the verbs that put it somewhere as often: they need to say that they do not.
pub(in crate::infer) const FETCHING_HOME: &[&str] = &["download export"];

/// Names of arguments that say where a result is put.
pub(in crate::infer) const DESTINATIONS: &[&str] = &[
    "destinationpath downloadpath outputdir outputdirectory outputdirpath",
    "outputfile outputpath savepath saveto",
];

/// Names of arguments that hold a file: of what a tool reads, or of where it puts it.
pub(in crate::infer) const FILES: &[&str] =
    &["destination file filename filepath folder folderid localpath output path"];

/// Words of an argument that begins with `output` which say what it looks like, not where it goes.
pub(in crate::infer) const SHAPES: &[&str] = &[
    "columns detail encoding fields format language length limit mode schema size style type",
    "unit units",
];

/// Words of a description that say the same.
pub(in crate::infer) const KEEPING: &[&str] =
    &["disk local locally save saves saved saving store stores write writes"];

/// Names of arguments that choose between the things a tool does.
pub(in crate::infer) const CHOICES: &[&str] = &["action operation method op command"];

/// Names of arguments that hold a program: what such a tool does, its name cannot say.
pub(in crate::infer) const PROGRAMS: &[&str] = &["sql command script code statement"];

/// The one reading verb that may have a program to run; `run` and `execute` do not read anyway.
pub(in crate::infer) const QUERY: &str = "query";

/// Verbs that look something up, and may yet do so by a statement that does more.
pub(in crate::infer) const RETRIEVING: &[&str] =
    &["count fetch find get list read retrieve search select show"];

/// Names of arguments that hold such a statement.
pub(in crate::infer) const STATEMENTS: &[&str] = &["sql command statement"];

/// Arguments by which a caller agrees to what cannot be taken back.
pub(in crate::infer) const AGREEMENTS: &[&str] = &["confirm confirmed confirmation"];

/// Words of a description that say a result is handed over.
pub(in crate::infer) const HANDED: &[&str] =
    &["base64 content contents embedded return returned returning returns url"];

/// Nouns for a reading, where no ending tells: `runs a diagnostic`.
pub(in crate::infer) const READING_NOUNS: &[&str] =
    &["analysis diagnostic diagnostics lookup retrieval validation"];

/// Verbs of a description that leave the meaning to a noun: `Performs a quick web search`.
pub(in crate::infer) const LIGHT_VERBS: &[&str] = &["perform performs conduct conducts do does"];

/// After these, a word of a description that may be a noun is a verb: `lets you list`.
pub(in crate::infer) const BEFORE_VERB: &[&str] = &["to can will you that which tool and or"];

/// Before these, one that may be a noun is one: `Messages of a channel`.
pub(in crate::infer) const AFTER_NOUN: &[&str] = &["of that which whose by"];

/// Before these, one that may be a noun is a verb: `and mark them as read`.
pub(in crate::infer) const AFTER_VERB: &[&str] =
    &["a all an any each every her him it its one that the their them these this those your"];

/// Words of a description for what differs each time.
pub(in crate::infer) const CHANCE: &[&str] = &["random randomly"];

/// Words of a name for things that lie outside.
pub(in crate::infer) const OUTSIDE: &[&str] =
    &["browser crawl email internet mail online scrape url web webpage website"];

/// Words of a name for things of the machine the server runs on, and for what needs no world at all.
pub(in crate::infer) const AT_HOME: &[&str] = &[
    "calculate commit directories directory echo entities file files filesystem folder git",
    "graph local memory process processes stdin terminal think thinking thought time timezone",
    "uuid",
];

/// The verbs, by what they do.
pub(in crate::infer) const BY_KIND: &[(VerbKind, &[&str])] = &[
    (VerbKind::Read, READ),
    (VerbKind::Read, READ_NOUNS),
    (VerbKind::Read, READ_IN_PROSE),
    (VerbKind::Add, ADD),
    (VerbKind::Mark, MARK),
    (VerbKind::Act, ACT),
    (VerbKind::Set, SET),
    (VerbKind::Change, CHANGE),
    (VerbKind::Delete, DELETE),
    (VerbKind::Damage, DAMAGE),
];

/// How words behave in a name, where they are not verbs throughout.
pub(in crate::infer) const BY_USE: &[(Use, &[&str])] = &[
    (Use::Prose, READ_IN_PROSE),
    (Use::Noun, MOSTLY_NOUN),
    (Use::Noun, READ_NOUNS),
    (Use::Either, VERB_OR_NOUN),
    (Use::First, VERB_IN_FRONT),
];

/// Returns how a word behaves in a name.
pub(in crate::infer) fn usage(word: &str) -> Use {
    BY_USE
        .iter()
        .find(|(_, lines)| each(lines).any(|entry| entry == word))
        .map_or(Use::Verb, |(usage, _)| *usage)
}

/// Returns the words of a list, one by one.
pub(in crate::infer) fn each(lines: &'static [&'static str]) -> impl Iterator<Item = &'static str> {
    lines.iter().flat_map(|line| line.split(' '))
}
