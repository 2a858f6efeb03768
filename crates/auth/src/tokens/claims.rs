//! From the claims of a token to the caller it stands for.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use callward_core::{Caller, Credential, CredentialKind, Principal, is_invisible};
use serde_json::Value;

use super::config::IssuerConfig;
use super::jwt::Claims;
use crate::Reason;

/// As OpenID Connect has it.
const MAX_SUBJECT: usize = 255;

/// Returns the caller that claims of an issuer name, if they are for us and valid now. The claims
/// must be known to be the issuer's.
pub(super) fn caller(
    issuer: &IssuerConfig,
    kind: CredentialKind,
    claims: &Claims,
    now: SystemTime,
) -> Result<Caller, Reason> {
    let now = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    // an answer about a token is the issuer's without repeating who answers, and may not know when
    // the token expires
    let is_jwt = kind == CredentialKind::Jwt;
    let iss = claim(claims, "iss");
    if iss.map_or(is_jwt, |iss| iss.as_str() != Some(&issuer.issuer)) {
        return Err(Reason::Issuer);
    }
    let expires = time(claim(claims, "exp"))?;
    if is_jwt && expires.is_none() {
        return Err(Reason::Claims);
    }
    if expires.is_some_and(|expires| expires.saturating_add(issuer.leeway) <= now) {
        return Err(Reason::Expired);
    }
    let begins = time(claim(claims, "nbf"))?.unwrap_or_default();
    if begins > now.saturating_add(issuer.leeway) {
        return Err(Reason::NotYetValid);
    }
    let audience = match claim(claims, "aud") {
        Some(Value::String(one)) => BTreeSet::from([one.clone()]),
        several => words(several)?.ok_or(Reason::Claims)?,
    };
    if !issuer.audience.iter().any(|ours| audience.contains(ours)) {
        return Err(Reason::Audience);
    }
    let subject = claim(claims, "sub").and_then(Value::as_str);
    let subject =
        subject.filter(|sub| (1..=MAX_SUBJECT).contains(&sub.len()) && !sub.contains(is_invisible));
    let subject = subject.ok_or(Reason::Claims)?;
    if issuer
        .required
        .iter()
        .any(|path| claim(claims, path).is_none())
    {
        return Err(Reason::Claims);
    }
    let roles = issuer
        .roles_claim
        .as_deref()
        .and_then(|path| claim(claims, path));
    let scopes = claim(claims, "scope").or_else(|| claim(claims, "scp"));
    let expires = expires.map(|time| {
        SystemTime::UNIX_EPOCH
            .checked_add(time)
            .ok_or(Reason::Claims)
    });
    let mut credential = Credential::default();
    credential.kind = kind;
    credential.roles = words(roles)?.unwrap_or_default();
    // an issuer leaves the claim out where it granted no scope
    credential.scopes = Some(words(scopes)?.unwrap_or_default());
    credential.expires = expires.transpose()?;
    Ok(Caller::new(Principal::of(&issuer.issuer, subject)).with_credential(credential))
}

/// Returns the claim of a name, or else at a path. `null` counts as absent.
fn claim<'a>(claims: &'a Claims, path: &str) -> Option<&'a Value> {
    // a name may contain dots: many are URLs
    let named = claims.get(path).or_else(|| {
        let mut names = path.split('.');
        let first = claims.get(names.next()?)?;
        names.try_fold(first, |value, name| value.get(name))
    });
    named.filter(|value| !value.is_null())
}

/// Reads a time since the epoch.
fn time(claim: Option<&Value>) -> Result<Option<Duration>, Reason> {
    let read = |value: &Value| Duration::try_from_secs_f64(value.as_f64()?).ok();
    claim
        .map(|value| read(value).ok_or(Reason::Claims))
        .transpose()
}

/// Reads a list of strings, or one string with words.
fn words(claim: Option<&Value>) -> Result<Option<BTreeSet<String>>, Reason> {
    let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
    let read = match claim {
        None => return Ok(None),
        Some(Value::String(words)) => Some(
            words
                .split_ascii_whitespace()
                .map(ToOwned::to_owned)
                .collect(),
        ),
        Some(Value::Array(list)) => list.iter().map(text).collect(),
        Some(_) => None,
    };
    read.map(Some).ok_or(Reason::Claims)
}
