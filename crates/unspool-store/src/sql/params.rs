//! The values of a statement, given as an array, a tuple, `params!` or an iterator.

use rusqlite::types::ToSql;

/// Values for the placeholders `?1`, `?2`, and so on.
pub trait Params {
    fn with<R>(&self, run: impl FnOnce(&[&dyn ToSql]) -> R) -> R;
}

impl Params for &[&dyn ToSql] {
    fn with<R>(&self, run: impl FnOnce(&[&dyn ToSql]) -> R) -> R {
        run(self)
    }
}

/// No values: `[]`.
impl Params for [i64; 0] {
    fn with<R>(&self, run: impl FnOnce(&[&dyn ToSql]) -> R) -> R {
        run(&[])
    }
}

macro_rules! arrays {
    ($($count:literal)*) => {
        $(impl<T: ToSql> Params for [T; $count] {
            fn with<R>(&self, run: impl FnOnce(&[&dyn ToSql]) -> R) -> R {
                run(&self.each_ref().map(|value| value as &dyn ToSql))
            }
        })*
    };
}
arrays! { 1 2 3 4 5 6 }

macro_rules! tuples {
    ($(($($name:ident $at:tt),*))*) => {
        $(impl<$($name: ToSql),*> Params for ($($name,)*) {
            fn with<R>(&self, run: impl FnOnce(&[&dyn ToSql]) -> R) -> R {
                run(&[$(&self.$at as &dyn ToSql),*])
            }
        })*
    };
}
tuples! {
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
}

pub struct FromIter<T>(Vec<T>);

/// Values that are put together at run time.
pub fn params_from_iter<T: ToSql>(values: impl IntoIterator<Item = T>) -> FromIter<T> {
    FromIter(values.into_iter().collect())
}

impl<T: ToSql> Params for FromIter<T> {
    fn with<R>(&self, run: impl FnOnce(&[&dyn ToSql]) -> R) -> R {
        let values: Vec<&dyn ToSql> = self.0.iter().map(|value| value as &dyn ToSql).collect();
        run(&values)
    }
}
