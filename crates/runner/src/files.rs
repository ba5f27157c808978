//! Files: written beside their place and renamed, errors that name the path.

use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a file could not be read or written.
#[derive(Clone, Debug)]
pub struct Error {
    /// The file or folder.
    pub path: PathBuf,
    /// What happened.
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.message)
    }
}

/// An error of this file.
pub fn error(path: &Path, message: impl fmt::Display) -> Error {
    Error { path: path.to_owned(), message: message.to_string() }
}

/// Writes a file beside its place and renames it.
///
/// # Errors
/// If it cannot be written.
pub fn write_beside(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    stream_beside(path, |file| file.write_all(bytes).map_err(|e| error(path, e)))
}

/// Writes a file bit by bit, beside its place, and renames it.
///
/// # Errors
/// If it cannot be written, or `write` says so; then nothing is left.
pub fn stream_beside<T>(
    path: &Path,
    write: impl FnOnce(&mut fs::File) -> Result<T, Error>,
) -> Result<T, Error> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let made = tempfile::Builder::new().prefix(WRITING).tempfile_in(folder);
    let mut file = made.map_err(|e| error(folder, e))?;
    // As long as it is written it is locked, so that nobody takes it for a leftover.
    let _ = file.as_file().try_lock();
    let written = write(file.as_file_mut())?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let _ = fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644));
    }
    file.persist(path).map_err(|e| error(path, e.error))?;
    Ok(written)
}

/// Writes a file beside its place, down to the disk, and renames it: for what cannot
/// be made again in a moment.
///
/// # Errors
/// If it cannot be written.
pub fn write_synced(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    stream_beside(path, |file| {
        file.write_all(bytes).and_then(|()| file.sync_all()).map_err(|e| error(path, e))
    })
}

/// Time after which a file that is not whole and not locked is a leftover.
const LEFT_FOR: Duration = Duration::from_secs(1);

/// Removes the files of a folder that a killed process did not finish. Nothing depends on it.
pub fn remove_leftovers(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let unfinished = |entry: &fs::DirEntry| {
        entry.file_name().to_string_lossy().starts_with(WRITING)
            && entry.metadata().is_ok_and(|about| {
                let old = about.modified().is_ok_and(|t| t.elapsed().is_ok_and(|t| t > LEFT_FOR));
                about.is_file() && old
            })
    };
    for entry in entries.filter(unfinished) {
        // Its writer holds a lock, which the system drops with the process.
        let dead = |file: &fs::File| file.try_lock().is_ok();
        if fs::File::open(entry.path()).is_ok_and(|file| dead(&file)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The size of a file that a user names, before it is opened.
///
/// # Errors
/// If it is not a regular file: a pipe would be waited for, and a device need not end.
pub fn size_of_regular(path: &Path) -> Result<u64, Error> {
    let about = fs::metadata(path).map_err(|e| error(path, plain(&e)))?;
    match about.file_type() {
        kind if kind.is_dir() => Err(error(path, "it is a folder; a file is expected")),
        kind if kind.is_file() => Ok(about.len()),
        _ => Err(error(path, "it is not a regular file")),
    }
}

/// The text of a file that a user names.
///
/// # Errors
/// If it is not a regular file, has more than `most` bytes, cannot be read, or is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> Result<String, Error> {
    let said = |e: io::Error| error(path, plain(&e));
    size_of_regular(path)?;
    let mut bytes = Vec::new();
    // Not what was announced: a file of /proc announces nothing.
    let file = fs::File::open(path).map_err(said)?;
    file.take(most + 1).read_to_end(&mut bytes).map_err(said)?;
    if bytes.len() as u64 > most {
        return Err(error(path, format!("it has more than {most} bytes, which are allowed")));
    }
    String::from_utf8(bytes).map_err(|_| error(path, "it is not UTF-8 text"))
}

/// An I/O error in plain words.
pub fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".into(),
        io::ErrorKind::InvalidData => "it is not UTF-8 text".into(),
        io::ErrorKind::IsADirectory => "it is a folder; a file is expected".into(),
        _ => error.to_string(),
    }
}

/// The bytes of a file that is no symbolic link and in no folder that is one.
///
/// # Errors
/// If it cannot be read.
pub fn read_plain(path: &Path) -> Result<Vec<u8>, Error> {
    for place in [path.parent().unwrap_or(path), path] {
        let kind = fs::symlink_metadata(place).map_err(|e| error(path, e))?;
        if kind.is_symlink() {
            return Err(error(place, "is a symbolic link, which results do not follow"));
        }
    }
    fs::read(path).map_err(|e| error(path, e))
}

/// What begins the name of a file or folder that is not whole yet.
pub const WRITING: &str = ".writing-";
/// What begins the name of a folder that another is about to stand for.
pub const REPLACED: &str = ".replaced-";

/// A folder that is written beside its place.
pub struct Beside {
    folder: tempfile::TempDir,
}

impl Beside {
    /// An empty one below `folder`.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn new(folder: &Path) -> Result<Self, Error> {
        let made = tempfile::Builder::new().prefix(WRITING).tempdir_in(folder);
        Ok(Self { folder: made.map_err(|e| error(folder, e))? })
    }

    /// Writes a file in it, down to the disk.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let path = self.folder.path().join(name);
        let write = || {
            let mut file = fs::File::create_new(&path)?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        write().map_err(|e| error(&path, e))
    }

    /// Puts it in its place. A folder that stands there is moved aside first and then
    /// removed: at no time are both gone.
    ///
    /// # Errors
    /// If it cannot be moved; then the old one stays.
    pub fn settle(self, place: &Path) -> Result<(), Error> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let _ = fs::set_permissions(self.folder.path(), fs::Permissions::from_mode(0o755));
        }
        sync_folder(self.folder.path());
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        let old = place.with_file_name(format!("{REPLACED}{name}"));
        let replaces = place.symlink_metadata().is_ok();
        if replaces {
            fs::rename(place, &old).map_err(|e| error(place, e))?;
        }
        if let Err(e) = fs::rename(self.folder.path(), place) {
            if replaces {
                let _ = fs::rename(&old, place);
            }
            return Err(error(place, e));
        }
        let _ = self.folder.keep();
        if replaces {
            fs::remove_dir_all(&old).map_err(|e| error(&old, e))?;
        }
        if let Some(parent) = place.parent() {
            sync_folder(parent);
        }
        Ok(())
    }
}

/// Brings a folder's names to the disk, where a folder can be opened for that.
fn sync_folder(path: &Path) {
    if let Ok(folder) = fs::File::open(path) {
        let _ = folder.sync_all();
    }
}
