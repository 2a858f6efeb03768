//! Reads JWTs, without believing them yet.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use callward_core::FingerprintKey;
use jsonwebtoken::{Algorithm, AlgorithmFamily};
use serde_json::{Map, Value};

use crate::Reason;

/// The members of a JSON object.
pub(super) type Claims = Map<String, Value>;

/// The parts of a token, none of them verified.
pub(super) struct Jwt {
    /// What the signature covers.
    pub(super) signed: String,
    /// The signature, in base64.
    pub(super) signature: String,
    /// The algorithm it wants to be verified with: an asymmetric one.
    pub(super) algorithm: Algorithm,
    pub(super) kid: Option<String>,
    pub(super) claims: Claims,
}

impl Jwt {
    /// Reads a token; `None` if it is opaque.
    pub(super) fn read(token: &str) -> Result<Option<Self>, Reason> {
        let parts = token.rsplit_once('.');
        let Some((signed, signature)) = parts else {
            return Ok(None);
        };
        let Some((header, claims)) = signed.split_once('.').filter(|two| !two.1.contains('.'))
        else {
            return Ok(None);
        };
        let Some(header) = decode(header).filter(|text| is_object(text)) else {
            return Ok(None);
        };
        let header = object(&header)?;
        // a `crit` names what must be understood, and here nothing is
        if header.contains_key("crit") || !is_known_type(header.get("typ")) {
            return Err(Reason::Malformed);
        }
        let algorithm = header.get("alg").and_then(Value::as_str);
        let algorithm = algorithm.and_then(|name| name.parse::<Algorithm>().ok());
        let algorithm = algorithm.filter(|known| known.family() != AlgorithmFamily::Hmac);
        let kid = match header.get("kid") {
            None => None,
            Some(Value::String(kid)) => Some(kid.clone()),
            Some(_) => return Err(Reason::Malformed),
        };
        let claims = decode(claims).ok_or(Reason::Malformed)?;
        Ok(Some(Self {
            signed: signed.to_owned(),
            signature: signature.to_owned(),
            algorithm: algorithm.ok_or(Reason::Algorithm)?,
            kid,
            claims: object(&claims)?,
        }))
    }

    pub(super) fn issuer(&self) -> Option<&str> {
        self.claims.get("iss")?.as_str()
    }
}

fn decode(part: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(part).ok()
}

fn is_object(text: &[u8]) -> bool {
    text.trim_ascii_start().starts_with(b"{")
}

/// Reads an object that no two parsers read differently: without duplicate members, for one.
pub(crate) fn object(text: &[u8]) -> Result<Claims, Reason> {
    let digest = FingerprintKey::fixed().json(text);
    let read = digest.and_then(|_| serde_json::from_slice(text).ok());
    read.ok_or(Reason::Malformed)
}

/// Access tokens alone: an issuer signs other things with the same keys.
fn is_known_type(typ: Option<&Value>) -> bool {
    let known = ["JWT", "at+jwt", "application/at+jwt"];
    typ.is_none_or(|typ| {
        let is = |name: &&str| {
            typ.as_str()
                .is_some_and(|typ| typ.eq_ignore_ascii_case(name))
        };
        known.iter().any(is)
    })
}
