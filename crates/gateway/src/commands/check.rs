//! `callward serve --check`: what would run, and what of it is not the default.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use callward::core::{AuditScope, redact};
use callward::limit::Cap;
use callward::telemetry::export::OtlpConfig;
use serde::Serialize;

use crate::admin;
use crate::assemble::{self, Timed};
use crate::commands::serve::DEFAULT_FILE;
use crate::config::{
    AuditFile, Config, Keys, References, Sections, ServerConfig, TargetConfig, show_duration,
    show_size,
};
use crate::error::Outcome;
use crate::output::{Cell, Screen, Table};
use crate::telemetry;

#[derive(Serialize)]
struct Checked<'a> {
    ok: bool,
    listen: String,
    /// Where operators ask.
    admin: String,
    profile: &'a str,
    /// How long an attempt may take where its tool does not say.
    attempt_timeout: String,
    /// How long a listing may take.
    listing_timeout: String,
    /// The keys of each section that are not the defaults.
    cache: Keys,
    loop_guard: Keys,
    hedge: Keys,
    limits: Keys,
    router: Keys,
    /// Where spans and metrics are sent; absent if they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    traces: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<String>,
    telemetry: Keys,
    /// Which calls are written to the audit log; absent if none is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    audit: Option<CheckedAudit>,
    servers: Vec<CheckedServer<'a>>,
}

#[derive(Serialize)]
struct CheckedAudit {
    record: &'static str,
    path: String,
}

#[derive(Serialize)]
struct CheckedServer<'a> {
    id: &'a str,
    set: &'a str,
    weight: u32,
    prefix: Option<&'a str>,
    target: String,
    /// What is said of how it is called that is not the default.
    changed: Keys,
}

/// Says what would run. The file was checked on the way here.
///
/// # Errors
///
/// [`AppError`](crate::error::AppError) if the environment states a time that is none.
pub(crate) fn check(file: Option<&Path>, config: &Config, json: bool, screen: &Screen) -> Outcome {
    let references = &config.references;
    let server = |server: &'_ ServerConfig| -> String { target(&server.target, references) };
    let own = |server: &'_ ServerConfig| -> Keys { references.scrub_keys(server.changed()) };
    let timed = assemble::timed(config)?;
    let changed = config.changed().scrubbed(references);
    let otlp = telemetry::otlp(&config.telemetry)?;
    let place = |url: fn(&OtlpConfig) -> Option<&str>| {
        let url = otlp.as_ref().and_then(url);
        url.map(|url| redact::url(&references.scrub(url)))
    };
    let (traces, metrics) = (
        place(OtlpConfig::traces_url),
        place(OtlpConfig::metrics_url),
    );
    if json {
        let servers = config.servers.iter().map(|one| CheckedServer {
            id: one.id.as_str(),
            set: one.set.as_str(),
            weight: one.weight.get(),
            prefix: one.prefix.as_deref(),
            target: server(one),
            changed: own(one),
        });
        screen.json(&Checked {
            ok: true,
            listen: config.http.listen.to_string(),
            admin: admin(config),
            profile: config.profile.name,
            attempt_timeout: show_duration(attempt_timeout(config, &timed)),
            listing_timeout: show_duration(timed.discovery.timeout),
            cache: changed.cache,
            loop_guard: changed.loop_guard,
            hedge: changed.hedge,
            limits: changed.limits,
            router: changed.router,
            traces,
            metrics,
            telemetry: changed.telemetry,
            audit: config.audit.as_ref().map(|file| CheckedAudit {
                record: config.profile.audit.as_str(),
                path: audit_path(file, references),
            }),
            servers: servers.collect(),
        });
        return Ok(ExitCode::SUCCESS);
    }
    match file {
        Some(file) => screen.heading(&format!("{}: no problems; it would run", file.display())),
        None => screen.heading(&format!(
            "no --config, and no {DEFAULT_FILE} in this folder: the embedded sample would run"
        )),
    }
    settings(config, &timed, &changed, screen);
    let told = match (traces, metrics) {
        (None, None) => "nothing is sent to a collector".to_owned(),
        (traces, metrics) => {
            let off = || "nowhere".to_owned();
            let (traces, metrics) = (traces.unwrap_or_else(off), metrics.unwrap_or_else(off));
            format!("spans to {traces}, metrics to {metrics}")
        }
    };
    section("telemetry", &told, &changed.telemetry, screen);
    let mut servers = Table::new(&["server", "set", "weight", "prefix", "target"]);
    for one in &config.servers {
        servers.row(vec![
            Cell::plain(&one.id),
            Cell::plain(&one.set),
            Cell::plain(one.weight),
            Cell::plain(one.prefix.as_deref().unwrap_or("-")),
            Cell::plain(server(one)),
        ]);
    }
    screen.table(&servers);
    for one in &config.servers {
        for (key, value) in own(one) {
            screen.out(format_args!("servers.{}.{key} = {value}", one.id));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Says of each section what it comes to, and which of its keys are not the defaults.
fn settings(config: &Config, timed: &Timed, changed: &Sections, screen: &Screen) {
    let line = |what: &str, said: &str, keys: &Keys| section(what, said, keys, screen);
    let none = Keys::new();
    line(
        "endpoint",
        &format!("http://{}/mcp", config.http.listen),
        &none,
    );
    line("admin", &admin(config), &none);
    let deadline = show_duration(config.call_deadline);
    let profile = format!("{}, whole calls within {deadline}", config.profile.name);
    line("profile", &profile, &none);
    line("cache", &cache(config), &changed.cache);
    line("loop guard", &loop_guard(config), &changed.loop_guard);
    let retries = format!(
        "at most {} attempts, {} retries per call over time",
        config.retry.max_attempts,
        f64::from(config.retry.budget_percent) / 100.0
    );
    line("retries", &retries, &none);
    line("hedge", &hedge(config), &changed.hedge);
    line("limits", &limits(config, timed), &changed.limits);
    let breaker = format!(
        "open for {} after {} failures in a row",
        show_duration(config.breaker.open_time),
        config.breaker.failures
    );
    line("breaker", &breaker, &none);
    line("router", &router(config), &changed.router);
    let listing = format!("within {}", show_duration(timed.discovery.timeout));
    line("listing", &listing, &none);
    line("recorded", &recorded(config), &none);
}

/// Says which calls are written to the audit log.
fn recorded(config: &Config) -> String {
    let Some(file) = &config.audit else {
        return "no calls: `audit.path` is not set".into();
    };
    let calls = match config.profile.audit {
        AuditScope::All => "every call",
        AuditScope::Destructive => "destructive calls, and those whose hints ask for it",
        _ => "every call that is not read-only, and those whose hints ask for it",
    };
    format!("{calls}, in {}", audit_path(file, &config.references))
}

fn audit_path(file: &AuditFile, references: &References) -> String {
    let path = file.config.path.display().to_string();
    references.scrub(&path).into_owned()
}

fn admin(config: &Config) -> String {
    match &config.admin {
        Some(address) => address.to_string(),
        None => format!("http://{}, or a free port if it is taken", admin::DEFAULT),
    }
}

fn section(what: &str, said: &str, keys: &Keys, screen: &Screen) {
    screen.out(format_args!("{what:<10} {said}"));
    for (key, value) in keys {
        screen.out(format_args!("           {key} = {value}"));
    }
}

fn router(config: &Config) -> String {
    let pings = match &config.ping {
        None => "servers are not pinged".into(),
        Some(ping) => format!("servers are pinged every {}", show_duration(ping.interval)),
    };
    format!("{}, {pings}", config.router.strategy.strategy().name())
}

fn loop_guard(config: &Config) -> String {
    match &config.loop_guard {
        None => "off".into(),
        Some(guard) => format!(
            "answers a session's same call after {} failures in a row, for {}",
            guard.failures,
            show_duration(guard.window)
        ),
    }
}

fn hedge(config: &Config) -> String {
    match &config.hedge {
        None => "off".into(),
        Some(hedge) => format!(
            "a read slower than {} in 100 of its tool gets a second attempt",
            hedge.percentile
        ),
    }
}

fn limits(config: &Config, timed: &Timed) -> String {
    let cap = match config.limits.timeout.cap {
        Cap::Times(times) => format!("{times} times that"),
        Cap::At(cap) => show_duration(cap),
    };
    format!(
        "attempts within {} where a tool does not say, with progress {cap}",
        show_duration(attempt_timeout(config, timed))
    )
}

fn attempt_timeout(config: &Config, timed: &Timed) -> Duration {
    let stated = timed.limits.attempt_timeout;
    stated.unwrap_or(config.profile.attempt_timeout)
}

fn cache(config: &Config) -> String {
    if !config.cache.enabled {
        return "off".into();
    }
    let writes = if config.cache.idempotent_writes {
        "kept"
    } else {
        "not kept"
    };
    format!(
        "{} in all, {} per result, idempotent writes {writes}",
        show_size(config.cache.max_bytes),
        show_size(config.cache.max_item_bytes)
    )
}

/// Describes a target without its secrets: headers and environment are left out.
fn target(target: &TargetConfig, references: &References) -> String {
    match target {
        TargetConfig::Command { program, args, .. } => {
            let args = args.iter().map(|arg| references.scrub(arg));
            redact::command(&references.scrub(program), args)
        }
        TargetConfig::Http { url, .. } => redact::url(&references.scrub(url)),
    }
}
