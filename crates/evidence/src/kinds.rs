//! The macro that makes the list of the kinds of claims and the list of the kinds of figures.

/// Makes `KINDS`, the kinds of tables that manifests may have, and the function that makes the claim or figure that
/// such a table describes. There is a row for each kind: its name in manifests, a sentence for the reference, the type
/// of its keys, and a function from these keys to the claim or figure. A row after `#[cfg(test)]` is only for tests of
/// this crate.
macro_rules! kinds {
    (
        $sort:ident of $common:ty, each by $make:ident as $object:ty;
        $($(#[cfg($only:ident)])? $name:literal, $description:literal, $keys:ty, $value:expr;)*
    ) => {
        #[doc = concat!("The kinds of ", stringify!($sort), ", as manifests have them.")]
        pub static KINDS: &[TableKind<$common>] = &[$($(#[cfg($only)])? TableKind::of::<$keys>($name, $description)),*];

        fn $make(table: &KindTable<$common>) -> Box<$object> {
            match table.kind {
                $($(#[cfg($only)])? $name => Box::new($value(table.keys::<$keys>())),)*
                kind => unreachable!("{} have no kind {kind}", stringify!($sort)),
            }
        }
    };
}
pub(crate) use kinds;
