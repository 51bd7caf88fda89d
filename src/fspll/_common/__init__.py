"""What everything else stands on: errors, files, devices, tensor files, pictures, pages."""
