//! Checks the headers that repeat values of the body (2026-07-28).
//!
//! Proxies route and bill by these headers without reading bodies. If they could differ from the
//! body, a request could be let through as one call and run as another.

use std::fmt;
use std::sync::Arc;

use callward_core::{Caller, IdempotencyKey};
use http::HeaderMap;
use http::header::AsHeaderName;

use crate::server::Backend;
use crate::server::error::Fault;
use crate::server::request::{Request, method};
use crate::wire::{Era, header, known_version};

/// Reads the revision that a message is sent under, where its headers state one.
pub(super) fn stated_version(headers: &HeaderMap) -> Result<Option<&'static str>, Fault> {
    let stated = single(headers, &header::PROTOCOL_VERSION)?;
    stated
        .map(|stated| known_version(stated).ok_or_else(|| Fault::unsupported_version(stated)))
        .transpose()
}

/// Checks that a header which states the revision repeats the body, before it is known whether that
/// revision is supported.
pub(super) fn check_version(headers: &HeaderMap, request: &Request) -> Result<(), Fault> {
    match (
        &request.version,
        single(headers, &header::PROTOCOL_VERSION)?,
    ) {
        (Some(version), Some(_)) => expect(headers, &header::PROTOCOL_VERSION, version),
        _ => Ok(()),
    }
}

/// Checks the headers that mirror revision, method, name and arguments.
pub(super) fn check(
    headers: &HeaderMap,
    request: &Request,
    (backend, caller): (&dyn Backend, &Arc<Caller>),
) -> Result<(), Fault> {
    let version = request.version.as_deref().unwrap_or_default();
    expect(headers, &header::PROTOCOL_VERSION, version)?;
    if Era::of(version) == Era::Legacy {
        // a modern request under an older revision: its rules do not have these headers
        return Ok(());
    }
    expect(headers, &header::METHOD, &request.method)?;
    let Some(name) = request.name.as_deref() else {
        return Ok(()); // not relayed, or refused for that, with a better reason
    };
    expect(headers, &header::NAME, name)?;
    if request.method != method::CALL_TOOL {
        return Ok(());
    }
    // a tool that the caller may not call is unknown, whatever its headers
    let listing = backend.callable(caller);
    let Some(mirrored) = listing.mirrored(|| backend.info(caller), name) else {
        return Ok(());
    };
    let arguments = request.params.get("arguments");
    let arguments = arguments.map_or(&b"{}"[..], |raw| raw);
    let values = mirrored
        .values(arguments)
        .map_err(|error| Fault::invalid_params(format!("arguments: {error}")))?;
    for (header, value) in &values {
        let value = header::decode_value(value).unwrap_or_default();
        expect(headers, header.as_str(), &value)?;
    }
    let surplus = headers.keys().map(http::HeaderName::as_str).find(|header| {
        header.starts_with(header::PARAM_PREFIX) && !values.iter().any(|(name, _)| name == header)
    });
    surplus.map_or(Ok(()), |header| {
        let reason = format!("{header} mirrors nothing in the arguments");
        Err(Fault::header_mismatch(reason))
    })
}

/// Takes the name a client gives its call in a header. Where the body has one too, it is the same.
///
/// It may stand in quotes, as a structured field has it.
pub(super) fn take_key(headers: &HeaderMap, request: &mut Request) -> Result<(), Fault> {
    if request.method != method::CALL_TOOL {
        return Ok(());
    }
    let Some(raw) = single(headers, &header::IDEMPOTENCY_KEY)? else {
        return Ok(());
    };
    let bare = raw
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or(raw);
    let key = IdempotencyKey::new(bare)
        .map_err(|error| Fault::invalid_params(format!("Idempotency-Key: {error}")))?;
    if let Some(body) = &request.key
        && *body != key
    {
        let text = format!("Idempotency-Key is {raw:?}, the body says \"{body}\"");
        return Err(Fault::invalid_params(text));
    }
    request.key = Some(key);
    Ok(())
}

/// Returns a header that may be there once.
fn single(
    headers: &HeaderMap,
    name: impl AsHeaderName + Copy + fmt::Display,
) -> Result<Option<&str>, Fault> {
    header::single(headers, name).map_err(|why| Fault::header_mismatch(format!("{name} {why}")))
}

fn expect(
    headers: &HeaderMap,
    name: impl AsHeaderName + Copy + fmt::Display,
    body: &str,
) -> Result<(), Fault> {
    let Some(raw) = single(headers, name)? else {
        return Err(Fault::header_mismatch(format!("{name} is missing")));
    };
    match header::decode_value(raw) {
        Some(value) if value == body => Ok(()),
        _ => Err(Fault::header_mismatch(format!(
            "{name} is {raw:?}, the body says {body:?}"
        ))),
    }
}
