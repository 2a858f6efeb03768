//! Precedence and trust, case by case. `properties` has what holds for any hints.

use callward_core::infer::{RuleSet, Subject};
use callward_core::resolve::{Hints, resolve};
use callward_core::{
    Annotations, CallPlan, Field, Inferred, Observation, Profile, Resolved, Source, ToolOverlay,
    Trust,
};

use crate::stated;

/// One observation for each hint that is set.
fn observations(seen: &Annotations) -> Vec<Observation> {
    let seen = serde_json::to_value(seen).unwrap();
    let is_set = |field: &&Field| seen.get(field.as_str()).is_some();
    let of = |field: &Field| Observation {
        field: *field,
        reason: "seen".into(),
    };
    Field::ALL.iter().filter(is_set).map(of).collect()
}

/// What becomes of a tool that says nothing but its name and `declared`.
fn named(name: &str, declared: &Annotations, trust: Trust) -> Resolved {
    let inferred = RuleSet::Standard.infer(&Subject::new(name));
    resolve(&Hints::new(&inferred, declared, trust))
}

/// The name, after the rule set if it is not the standard one; the trust; what each source says;
/// the effect and effective hints, and `warned` if there are warnings. `READ` is what many servers
/// say of each read: read-only and idempotent.
const CASES: &str = "
# inference fills gaps
get_user | standard | | read_only
unlock_account | standard | | idempotent
create_order | standard | | mutating
set_limit | standard | | destructive
# a declaration takes back what weak evidence tightened, but idempotence overwrites all the same
set_limit | standard | declared destructive=false idempotent=true | idempotent
update_user | standard | declared destructive=false idempotent=true | idempotent
send_mail | standard | declared destructive=false idempotent=true | idempotent
set_limit | standard | declared idempotent=true | destructive
# weak evidence tightens and never relaxes
get_or_init_user | trusted | | mutating
log_delete | trusted | | destructive
# strong contrary evidence counts on a standard server only; weak evidence contradicts nothing
delete_user | standard | declared READ | destructive warned
delete_user | trusted | declared READ | read_only
log_delete | standard | declared READ | read_only
# a server that is contradicted is not believed about retries either
create_order | standard | declared READ destructive=false | mutating warned
# idempotence that is claimed of a read falls with the reading
- | trusted | declared READ; operator readOnly=false | mutating idempotentHint=-
- | trusted | declared READ; observed readOnly=false | mutating idempotentHint=-
- | trusted | defaults READ; declared readOnly=false | mutating
get_next_job | trusted | declared readOnly=false | mutating idempotentHint=-
# but said by itself, by the operator, or concluded of the write, it stands
- | trusted | defaults READ; declared idempotent=true; operator readOnly=false | idempotent
- | trusted | declared READ; operator readOnly=false idempotent=true | idempotent
unlock_account | trusted | declared READ; operator readOnly=false | idempotent
# a declared loss is not taken back by the name
get_and_forget | standard | declared destructive=true | destructive
get_next | standard | declared destructive=true | destructive
# one source that says both is read as destructive, but a stronger source decides
get_user | trusted | declared readOnly=true destructive=true | destructive readOnlyHint=false warned
delete_preview | standard | declared destructive=true; operator readOnly=true | read_only destructiveHint=-
delete_draft | standard | defaults readOnly=true; declared readOnly=true | read_only
neurolink: getAndDelete | standard | | destructive
neurolink: getAndDelete | standard | declared readOnly=true | destructive warned
# silence of an untrusted server is read as the worst
get_user | untrusted | declared readOnly=true | destructive readOnlyHint=false destructiveHint=true
get_user | untrusted | declared readOnly=true | idempotentHint=false openWorldHint=true
- | untrusted | operator readOnly=true | read_only
# what was seen tightens, and gives way to the operator only
- | trusted | declared READ; observed readOnly=false idempotent=false | mutating
- | trusted | declared readOnly=true; observed readOnly=false; operator readOnly=true | read_only
- | trusted | declared destructive=false; observed destructive=true | destructive
- | trusted | declared READ; plugin readOnly=false idempotent=false | mutating
- | trusted | declared READ; plugin destructive=true | destructive readOnlyHint=false warned
- | trusted | declared destructive=true; plugin READ | destructive
- | trusted | declared destructive=false; plugin destructive=true; operator READ | read_only
- | trusted | declared LEVEL=internal; plugin LEVEL=public | LEVEL=internal
- | standard | declared LEVEL=internal; plugin LEVEL=restricted | LEVEL=restricted
- | trusted | plugin LEVEL=restricted; operator LEVEL=public | LEVEL=public
- | trusted | plugin title=a complexity=complex | title=- complexity=-
- | untrusted | declared rateLimitHint=9; plugin rateLimitHint=10 | rateLimitHint=9.0
- | trusted | declared rateLimitHint=9; plugin rateLimitHint=8 | rateLimitHint=8.0
# a clock is never cached and a cursor never retried
get_current_time | standard | declared READ | read_only cache=bypass retry=safe
dice | trusted | declared READ | read_only cache=bypass retry=safe
next_page | standard | declared READ | read_only cache=bypass retry=only_unsent
next_page | trusted | declared READ | read_only cache=bypass retry=only_unsent
uuid | standard | declared destructive=false idempotent=true | idempotent cache=invalidate
# idempotence of a read does not let a profile retry what destroys
- | trusted | declared READ; operator destructive=true | destructive retry=never warned
# an untrusted server may only narrow and slow down
- | untrusted | defaults rateLimitHint=60; declared rateLimitHint=10 | rateLimitHint=10.0
- | untrusted | defaults rateLimitHint=60; declared rateLimitHint=600 | rateLimitHint=60.0
- | untrusted | defaults rateLimitHint=60; declared rateLimitHint=0 | rateLimitHint=60.0
- | untrusted | defaults rateLimitHint=60; declared rateLimitHint=-1 | rateLimitHint=60.0
- | untrusted | defaults LEVEL=internal; declared LEVEL=public | LEVEL=internal
- | untrusted | defaults LEVEL=internal; declared LEVEL=restricted | LEVEL=restricted
- | untrusted | defaults auditRequired=true; declared auditRequired=false | auditRequired=true
- | untrusted | defaults ASK=true; declared ASK=false | ASK=true
";

#[test]
fn each_tool_is_resolved_as_its_case_says() {
    let cases = CASES
        .replace("READ", "readOnly=true idempotent=true")
        .replace("ASK", "requiresConfirmation")
        .replace("LEVEL", "securityLevel");
    let is_case = |line: &&str| !line.is_empty() && !line.starts_with('#');
    for case in cases.lines().filter(is_case) {
        let columns: Vec<&str> = case.split('|').map(str::trim).collect();
        let [name, trust, said, expected] = columns[..] else {
            panic!("{case}");
        };
        let (rules, name) = name.split_once(": ").unwrap_or(("standard", name));
        let inferred = match name {
            "-" => Inferred::default(),
            name => RuleSet::by_name(rules).unwrap().infer(&Subject::new(name)),
        };
        let source = |source: &str| {
            let mut all = said.split(';').map(str::trim);
            all.find_map(|said| said.strip_prefix(source)).map(stated)
        };
        let (defaults, seen) = (source("defaults"), source("observed").unwrap_or_default());
        let observed = observations(&seen);
        let (declared, operator) = (source("declared").unwrap_or_default(), source("operator"));
        let mut all = Hints::new(&inferred, &declared, Trust::by_name(trust).unwrap());
        all.server_defaults = defaults.as_ref();
        all.observed = &observed;
        all.operator = operator.as_ref();
        let mut overlay = ToolOverlay::default();
        overlay.hints = source("plugin").unwrap_or_default();
        let overlays = [overlay];
        all.overlays = &overlays;
        let resolved = resolve(&all);
        // this profile differs only in what it retries and records
        let plan = CallPlan::derive(&resolved, &Profile::by_name("epd").unwrap());
        let mut effective = serde_json::to_value(&resolved.annotations).unwrap();
        let written = serde_json::to_value(&plan).unwrap();
        effective["cache"] = written["cache"]["rule"].clone();
        effective["retry"] = written["retry"].clone();
        let is_warned = expected.contains("warned");
        assert_eq!(!resolved.warnings.is_empty(), is_warned, "{case}");
        for word in expected.split(' ').filter(|word| *word != "warned") {
            match word.split_once('=') {
                None => assert_eq!(plan.effect.as_str(), word, "{case}"),
                Some((field, "-")) => assert_eq!(effective.get(field), None, "{case}"),
                Some((field, value)) => {
                    let found = effective[field].to_string();
                    assert_eq!(found.trim_matches('"'), value, "{case}");
                }
            }
        }
    }
}

#[test]
fn a_hint_says_where_it_comes_from() {
    let resolved = named("get_user", &stated(""), Trust::Standard);
    let why = resolved.why(Field::ReadOnly);
    assert_eq!(why, "inferred, the name leads with `get`");
    let reads = stated("readOnly=true");
    let untrusted = named("get_user", &reads, Trust::Untrusted);
    let source = untrusted.provenance_of(Field::ReadOnly).unwrap().source;
    assert_eq!(source, Source::Assumed);
    let warned =
        "the server declares readOnlyHint true, but the name leads with `delete`: read as false";
    assert_eq!(
        named("delete_user", &reads, Trust::Standard).warnings,
        [warned]
    );
    let both = stated("readOnly=true destructive=true");
    let warned = "read-only (declared) and destructive (declared) at once: read as destructive";
    assert_eq!(named("get_user", &both, Trust::Trusted).warnings, [warned]);
    let (nothing, seen) = (Inferred::default(), stated("readOnly=false"));
    let said = Hints {
        observed: &observations(&seen),
        ..Hints::new(&nothing, &both, Trust::Trusted)
    };
    let observed = resolve(&said);
    assert_eq!(observed.why(Field::ReadOnly), "observed, seen");
}
