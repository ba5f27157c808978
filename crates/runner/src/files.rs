//! Files: written to a temporary file and renamed, and errors that name the path.

use sha2::{Digest, Sha256};
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

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |four: u8| char::from(b"0123456789abcdef"[usize::from(four)]);
    bytes.iter().flat_map(|b| [digit(b >> 4), digit(b & 15)]).collect()
}

/// SHA-256 of these bytes, 64 hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Writes a file to a temporary file in the same directory, then renames it.
///
/// # Errors
/// If it cannot be written.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    stream_atomically(path, |file| file.write_all(bytes).map_err(|e| error(path, e)))
}

/// Streams a file to a temporary file in the same directory, then renames it.
///
/// # Errors
/// If it cannot be written, or `write` fails; then no file is left.
pub fn stream_atomically<T>(
    path: &Path,
    write: impl FnOnce(&mut fs::File) -> Result<T, Error>,
) -> Result<T, Error> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let made = tempfile::Builder::new().prefix(WRITING).tempfile_in(folder);
    let mut file = made.map_err(|e| error(folder, e))?;
    // It is locked while it is written, so that no other process takes it for a leftover.
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

/// Writes and syncs a temporary file in the same directory, then renames it: for files that
/// cannot be made again in a moment.
///
/// # Errors
/// If it cannot be written.
pub fn write_synced(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    stream_atomically(path, |file| {
        file.write_all(bytes).and_then(|()| file.sync_all()).map_err(|e| error(path, e))
    })
}

/// The age of an unlocked temporary file from which on it is a leftover.
const LEFTOVER_AGE: Duration = Duration::from_secs(1);

/// Removes the files of a folder that a killed process did not finish. Nothing depends on it.
pub fn remove_leftovers(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let unfinished = |entry: &fs::DirEntry| {
        entry.file_name().to_string_lossy().starts_with(WRITING)
            && entry.metadata().is_ok_and(|about| {
                let old =
                    about.modified().is_ok_and(|t| t.elapsed().is_ok_and(|t| t > LEFTOVER_AGE));
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
    let unread = |e: io::Error| error(path, plain(&e));
    size_of_regular(path)?;
    let mut bytes = Vec::new();
    // The announced size is ignored: that of a file of /proc is 0.
    let file = fs::File::open(path).map_err(unread)?;
    file.take(most + 1).read_to_end(&mut bytes).map_err(unread)?;
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

/// The prefix of the name of a temporary file or directory.
pub const WRITING: &str = ".writing-";
/// The prefix of the name of a directory that another one is about to replace.
pub const REPLACED: &str = ".replaced-";

/// A temporary directory that is renamed when it is complete.
pub struct TemporaryFolder {
    folder: tempfile::TempDir,
}

impl TemporaryFolder {
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

    /// Renames it. An existing folder of that name is renamed first and removed afterwards, so
    /// that one of them exists at any time.
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
