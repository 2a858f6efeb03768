//! `callward events`: the decisions of the router of a running gateway, live.

use std::process::ExitCode;
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::args::Gateway;
use crate::config::show_duration;
use crate::error::{AppError, Outcome};
use crate::output::{self, Tone};
use crate::state_dir::StateDir;
use crate::{api, plain, shutdown};

pub(crate) async fn run(args: Gateway, state: Option<&StateDir>) -> Outcome {
    print(args, state, (&["routes", "events"], described)).await
}

/// A stream of events: its path below `/api`, and what is said of an event, with its severity.
type Stream = (
    &'static [&'static str],
    fn(&Value) -> (String, Option<Tone>),
);

/// Prints events until Ctrl-C, or the gateway ends them.
pub(crate) async fn print(args: Gateway, state: Option<&StateDir>, stream: Stream) -> Outcome {
    let stop = shutdown::on_signal()?;
    tokio::select! {
        biased;
        () = stop.asked.cancelled() => Ok(ExitCode::SUCCESS),
        followed = follow(args, state, stream) => followed,
    }
}

async fn follow(args: Gateway, state: Option<&StateDir>, stream: Stream) -> Outcome {
    let (remote, url) = api::gateway(&args, state).await?;
    let mut events = remote.events(stream.0).await?;
    output::note(format_args!("following {url}"));
    while output::is_read() {
        let Some(event) = events.next().await.transpose()? else {
            output::note("the gateway stopped, or the credential is not valid any more");
            break;
        };
        show(&event, args.json, stream)
            .map_err(|error| AppError::Remote(format!("an event cannot be read: {error}")))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show(event: &str, as_json: bool, (_, describe): Stream) -> serde_json::Result<()> {
    if as_json {
        output::json(serde_json::from_str::<&RawValue>(event)?);
        return Ok(());
    }
    let (line, tone) = describe(&serde_json::from_str(event)?);
    let line = plain::line(&line);
    output::line(tone.map_or_else(|| line.clone(), |tone| output::toned(&line, tone)));
    Ok(())
}

/// What is said of each type of event; `{name}` stands for a member of it. Of several lines the
/// first counts whose members are there.
const LINES: [&str; 18] = [
    "routeDecision | decision  {set}.{tool}, attempt {attempt} -> {chosen}, {reason} ({strategy}, \
     {eligible} of {servers} eligible)",
    "routeFailed | failed    {set}.{tool}, attempt {attempt} -> no server ({strategy}, {eligible} \
     of {servers} eligible): {error}",
    "healthUpdate | health    {server} of {set}, tool {tool}: {from} -> {to}, for {reason}",
    "healthUpdate | health    {server} of {set}: {from} -> {to}, for {reason}",
    "affinitySet | affinity  {by} {key} in {set} goes to {server} for {ttl_ms}",
    "affinityExpired | affinity  {by} {key} in {set} leaves {server}: {reason}",
    "toolRegistered | added     {set}.{tool}",
    "toolUnregistered | removed   {set}.{tool}",
    "toolRefused | refused   {tool} of {server}: {reason}",
    "toolHeld | held      {set}.{tool} of {server}: {reason}: {fields}",
    "toolChanged | changed   {set}.{tool} of {server}: {fields}",
    "toolRenamed | renamed   {set}.{tool} is `{name}`: its own name belongs to another tool",
    "annotationsUpdated | hints     {set}.{tool} is treated by other hints or rules",
    "discoveryCompleted | listed    {server} of {set}: {listed} tools in {duration_ms} ({added} \
     added, {changed} changed, {removed} removed, {refused} refused, {held} held)",
    "discoveryFailed | unlisted  {server} of {set}: {error}",
    "serverUp | up        {server} of {set}",
    "serverDown | down      {server} of {set}: {reason}",
    "missed | missed    {events} events: this reader is too slow",
];

/// Returns an event as a line with its severity.
fn described(event: &Value) -> (String, Option<Tone>) {
    let kind = event["type"].as_str().unwrap_or_default();
    let known = LINES.into_iter().filter_map(|line| line.split_once(" | "));
    let mut lines = known.filter_map(|(of, line)| filled(line, event).filter(|_| of == kind));
    let line = lines.next();
    let tone = match kind {
        "routeDecision" => None,
        "routeFailed" | "discoveryFailed" | "serverDown" => Some(Tone::Bad),
        "affinitySet" | "affinityExpired" | "discoveryCompleted" => Some(Tone::Aside),
        "serverUp" => Some(Tone::Good),
        _ => Some(Tone::Doubtful),
    };
    let unknown = || "other     an event that this version does not know".to_owned();
    (line.unwrap_or_else(unknown), tone)
}

/// Replaces the names of members by their values; `None` if one is not there.
fn filled(line: &str, event: &Value) -> Option<String> {
    let mut pieces = line.split(['{', '}']);
    let mut filled = pieces.next()?.to_owned();
    while let (Some(name), Some(text)) = (pieces.next(), pieces.next()) {
        filled += &match &event[name] {
            Value::Null => return None,
            Value::String(text) => text.clone(),
            Value::Number(millis) if name.ends_with("_ms") => {
                show_duration(Duration::from_millis(millis.as_u64()?))
            }
            other => other.to_string(),
        };
        filled += text;
    }
    Some(filled)
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_event_is_one_line() {
        for row in [
            r#"{"type":"routeDecision","set":"shop","tool":"get","attempt":2,"strategy":"random",
                "servers":2,"eligible":1,"chosen":"a","reason":"in turn"} =>
               decision  shop.get, attempt 2 -> a, in turn (random, 1 of 2 eligible)"#,
            r#"{"type":"routeFailed","set":"shop","tool":"get","attempt":1,"strategy":"random",
                "servers":2,"eligible":0,"chosen":null,"error":"breaker_open"} =>
               failed    shop.get, attempt 1 -> no server (random, 0 of 2 eligible): breaker_open"#,
            r#"{"type":"healthUpdate","set":"shop","server":"a","from":"healthy","to":"open",
                "reason":"5 failures in a row"} =>
               health    a of shop: healthy -> open, for 5 failures in a row"#,
            r#"{"type":"healthUpdate","set":"shop","server":"a","from":"healthy","to":"open",
                "reason":"x","tool":"get"} =>
               health    a of shop, tool get: healthy -> open, for x"#,
            r#"{"type":"affinitySet","set":"shop","by":"session","key":"1f","server":"a",
                "ttl_ms":90000} => affinity  session 1f in shop goes to a for 1m 30s"#,
            r#"{"type":"affinityExpired","set":"shop","by":"user","key":7,"server":"a",
                "reason":"ttl"} => affinity  user 7 in shop leaves a: ttl"#,
            r#"{"type":"toolRefused","server":"a","tool":"get","reason":"listed twice"} =>
               refused   get of a: listed twice"#,
            r#"{"type":"toolHeld","set":"shop","server":"a","tool":"get","reason":"it is new",
                "fields":["title"]} => held      shop.get of a: it is new: ["title"]"#,
            r#"{"type":"toolChanged","set":"shop","server":"a","tool":"get","fields":["name"]} =>
               changed   shop.get of a: ["name"]"#,
            r#"{"type":"toolRenamed","set":"shop","tool":"find","name":"shop__find"} =>
               renamed   shop.find is `shop__find`: its own name belongs to another tool"#,
            r#"{"type":"toolRegistered","set":"shop","tool":"get"} => added     shop.get"#,
            r#"{"type":"toolUnregistered","set":"shop","tool":"get"} => removed   shop.get"#,
            r#"{"type":"annotationsUpdated","set":"shop","tool":"get"} =>
               hints     shop.get is treated by other hints or rules"#,
            r#"{"type":"discoveryCompleted","set":"s","server":"a","listed":7,"added":6,"changed":5,
                "removed":4,"refused":3,"held":2,"duration_ms":2000} =>
            listed    a of s: 7 tools in 2s (6 added, 5 changed, 4 removed, 3 refused, 2 held)"#,
            r#"{"type":"discoveryFailed","set":"shop","server":"a","error":"late"} =>
               unlisted  a of shop: late"#,
            r#"{"type":"serverUp","set":"shop","server":"a"} => up        a of shop"#,
            r#"{"type":"serverDown","set":"shop","server":"a","reason":"gone"} =>
               down      a of shop: gone"#,
            r#"{"type":"missed","events":3} => missed    3 events: this reader is too slow"#,
            r#"{"type":"new","x":1} => other     an event that this version does not know"#,
        ] {
            let (event, line) = row.split_once(" =>").unwrap();
            let event = serde_json::from_str(event).unwrap();
            assert_eq!(super::described(&event).0, line.trim());
        }
    }
}
