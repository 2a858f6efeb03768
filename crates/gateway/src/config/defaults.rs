//! Structs of keys that state their defaults.

/// Defines a struct whose fields state their defaults after `=`. A field that states none has the
/// default of its type.
macro_rules! with_defaults {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $($(#[$of_field:meta])* $field_vis:vis $field:ident: $type:ty $(= $default:expr)?,)*
        }
    ) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[$of_field])* $field_vis $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($field: $crate::config::with_defaults!(@ $($default)?),)*
                }
            }
        }
    };
    (@) => { Default::default() };
    (@ $default:expr) => { $default };
}

pub(crate) use with_defaults;
