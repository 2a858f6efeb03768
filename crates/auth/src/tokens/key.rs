//! The public keys of an issuer, and which of them a token needs.
//!
//! The algorithm follows from the key: a token only says which of the key's own it was signed with.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};
use serde::Deserialize;
use serde_json::Value;

use super::jwt::Jwt;
use crate::Reason;

const MAX_KEYS: usize = 100;

/// A public key, and what it verifies.
pub(super) struct Key {
    kid: Option<String>,
    algorithms: Vec<Algorithm>,
    key: DecodingKey,
}

impl Key {
    /// Reads a key; `None` if it is not one for signatures. A symmetric key never is: who can
    /// verify with it can sign.
    fn read(key: Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(key).ok()?;
        let common = &jwk.common;
        let of_use = |known: &PublicKeyUse| *known == PublicKeyUse::Signature;
        let verifies = |known: &Vec<KeyOperations>| known.contains(&KeyOperations::Verify);
        if !common.public_key_use.as_ref().is_none_or(of_use)
            || !common.key_operations.as_ref().is_none_or(verifies)
        {
            return None;
        }
        let mut algorithms = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => AlgorithmFamily::Rsa.algorithms().to_vec(),
            AlgorithmParameters::EllipticCurve(key) => match key.curve {
                EllipticCurve::P256 => vec![Algorithm::ES256],
                EllipticCurve::P384 => vec![Algorithm::ES384],
                _ => return None,
            },
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
                vec![Algorithm::EdDSA]
            }
            _ => return None,
        };
        if let Some(only) = common.key_algorithm {
            let only = Algorithm::try_from(only).ok()?;
            algorithms.retain(|known| *known == only);
        }
        let key = DecodingKey::from_jwk(&jwk).ok()?;
        Some(Self {
            kid: jwk.common.key_id,
            algorithms,
            key,
        })
    }

    /// Reads what an issuer publishes (RFC 7517).
    pub(super) fn read_all(body: &[u8]) -> Result<Vec<Self>, String> {
        #[derive(Deserialize)]
        struct Keys {
            keys: Vec<Value>,
        }
        let read: Keys = serde_json::from_slice(body)
            .map_err(|_| "its keys are not an object with the list `keys`".to_owned())?;
        let count = read.keys.len();
        if count > MAX_KEYS {
            return Err(format!("it has {count} keys; at most {MAX_KEYS} are read"));
        }
        Ok(read.keys.into_iter().filter_map(Self::read).collect())
    }

    /// Selects the key of a token: by its id, or the only one that fits if the token names none.
    pub(super) fn select<'a>(keys: &'a [Self], jwt: &Jwt) -> Result<&'a Self, Reason> {
        let is_named = |key: &&Self| jwt.kid.is_none() || key.kid == jwt.kid;
        let fits = |key: &&Self| key.algorithms.contains(&jwt.algorithm);
        let mut fitting = keys.iter().filter(is_named).filter(fits);
        match (fitting.next(), fitting.next()) {
            (Some(key), None) => Ok(key),
            (Some(key), Some(_)) if jwt.kid.is_some() => Ok(key),
            (None, _) if keys.iter().any(|key| is_named(&key)) => Err(Reason::Algorithm),
            _ => Err(Reason::UnknownKeyId),
        }
    }

    /// Checks the signature.
    pub(super) fn verify(&self, jwt: &Jwt) -> Result<(), Reason> {
        let signed = jwt.signed.as_bytes();
        match jsonwebtoken::crypto::verify(&jwt.signature, signed, &self.key, jwt.algorithm) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Reason::Signature),
            Err(_) => Err(Reason::Malformed),
        }
    }
}
