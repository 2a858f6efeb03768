//! Whom a client certificate names.
//!
//! The caller of this module has verified the certificate, and knows which of the authorities that
//! it trusts vouches for it.

use std::time::SystemTime;

use callward_core::{Caller, Credential, CredentialKind, Principal};
use sha2::{Digest, Sha256};
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::{DirectoryString, GeneralName};

use crate::{Reason, hex};

/// The longest name, in bytes: that of a SPIFFE ID.
const MAX_NAME: usize = 2048;

/// Returns the issuer of the principals that an authority vouches for: `certificate:` and a hash of
/// its public key, the content of its `SubjectPublicKeyInfo`. Another authority's names are other
/// principals, also if both call themselves the same.
#[must_use]
pub fn issuer(authority_key: &[u8]) -> String {
    let hash = Sha256::digest(authority_key).into_iter().take(16);
    format!("certificate:{}", hex(hash))
}

/// Returns the caller that a certificate in DER names, until it expires.
///
/// The name is the first URI of the subject alternative names, such as a SPIFFE ID; else `DNS=` and
/// their first host, else `email=` and their first address, else `CN=` and the subject's common
/// name. No name of one kind can be taken for one of another.
///
/// # Errors
///
/// [`Reason::Malformed`] if it cannot be read; [`Reason::NoName`] if it has no such name, or one
/// with control characters or more than 2048 bytes.
pub fn caller(der: &[u8], authority_key: &[u8]) -> Result<Caller, Reason> {
    let certificate = Certificate::from_der(der).map_err(|_| Reason::Malformed)?;
    let certificate = certificate.tbs_certificate();
    let names = certificate.get_extension::<SubjectAltName>();
    let names = names.map_err(|_| Reason::Malformed)?;
    let names = names.map_or_else(Vec::new, |(_, names)| names.0);
    let names = names.iter().filter_map(|name| match name {
        GeneralName::UniformResourceIdentifier(uri) => Some((0, "", uri.as_str())),
        GeneralName::DnsName(host) => Some((1, "DNS=", host.as_str())),
        GeneralName::Rfc822Name(address) => Some((2, "email=", address.as_str())),
        _ => None,
    });
    let common = certificate.subject().common_name().ok().flatten();
    let common = common.as_ref().map(DirectoryString::value);
    let common = common.iter().map(|name| (3, "CN=", &**name));
    let found = names.chain(common).min_by_key(|(rank, ..)| *rank);
    let found = found.filter(|(rank, _, text)| is_usable(text) && (*rank > 0 || has_scheme(text)));
    let (_, kind, text) = found.ok_or(Reason::NoName)?;
    let end = certificate.validity().not_after.to_unix_duration();
    let mut credential = Credential::default();
    credential.kind = CredentialKind::Certificate;
    credential.expires = SystemTime::UNIX_EPOCH.checked_add(end);
    let principal = Principal::of(&issuer(authority_key), &format!("{kind}{text}"));
    Ok(Caller::new(principal).with_credential(credential))
}

fn is_usable(text: &str) -> bool {
    (1..=MAX_NAME).contains(&text.len()) && !text.contains(char::is_control)
}

/// Without `=`, so that it differs from the other kinds.
fn has_scheme(uri: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    let scheme = uri.split_once(':').map_or("", |(scheme, _)| scheme);
    !scheme.is_empty() && scheme.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    use super::*;

    fn der(common: Option<&str>, names: Vec<SanType>) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        if let Some(name) = common {
            params.distinguished_name.push(DnType::CommonName, name);
        }
        params.subject_alt_names = names;
        params.not_after = rcgen::date_time_ymd(2001, 9, 9);
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn the_most_specific_name_is_the_subject() {
        let uri = |text: &str| SanType::URI(text.try_into().unwrap());
        let dns = |text: &str| SanType::DnsName(text.try_into().unwrap());
        let email = |text: &str| SanType::Rfc822Name(text.try_into().unwrap());
        let ip = || SanType::IpAddress([127, 0, 0, 1].into());
        let long = format!("a:{}", "b".repeat(MAX_NAME - 1));
        for (common, names, expected) in [
            (
                Some("c"),
                vec![dns("d"), uri("spiffe://a/b="), uri("x:y")],
                Some("spiffe://a/b="),
            ),
            (
                Some("c"),
                vec![email("a@b"), dns("d"), dns("e")],
                Some("DNS=d"),
            ),
            (Some("c"), vec![ip(), email("a@b")], Some("email=a@b")),
            (Some("c"), vec![ip()], Some("CN=c")),
            (Some("spiffe://a/b"), vec![], Some("CN=spiffe://a/b")),
            (Some("c"), vec![uri("CN=a:b")], None),
            (Some("c"), vec![uri("no scheme")], None),
            (Some("c"), vec![uri(&long)], None),
            (Some("c"), vec![dns("")], None),
            (Some("a\nb"), vec![], None),
            (None, vec![ip()], None),
        ] {
            let found = caller(&der(common, names), b"key");
            let expected = expected.map(|name| Principal::of(&issuer(b"key"), name));
            let principal = found.clone().map(|caller| caller.principal);
            assert_eq!(principal, expected.ok_or(Reason::NoName));
            if let Ok(caller) = found {
                let end = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(999_993_600);
                assert_eq!(caller.credential.expires, Some(end));
            }
        }
    }

    #[test]
    fn two_authorities_are_two_issuers_and_bytes_are_refused() {
        let der = der(Some("a"), Vec::new());
        let of = |key: &[u8]| caller(&der, key).unwrap().principal;
        assert_ne!(of(b"key"), of(b"other"));
        assert!(
            of(b"key")
                .as_str()
                .starts_with("certificate:2c70e12b7a0646f9")
        );
        for length in 0..der.len() {
            assert!(caller(&der[..length], b"key").is_err(), "{length}");
        }
    }
}
